// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/names.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/link.h"
#include "libst/client/error.h"
#include "libst/client/links.h"
#include "libst/client/tries.h"
#include "libst/client/wait.h"

namespace stp::client {
namespace {

constexpr Time kArpPatience = kSecond;
// Time for the program at the other end of a memif to open it.
constexpr Time kPeerPatience = 10 * kSecond;
constexpr Time kArpInterval = 5 * kMillisecond;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList look_up(const char* host, const char* service, int family = AF_INET) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, service, &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

int parse_port(const std::string& text, std::uint32_t& out) {
  const auto* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, out);
  if (problem == std::errc{} && stop == end && out >= 1) return 0;
  const bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (digits)
    return fail(-EINVAL, "port '" + text + "' is not in 1.." + std::to_string(kLastUport));
  const auto found = look_up(nullptr, text.c_str());
  if (found == nullptr)
    return fail(-EINVAL,
                "no service is called '" + text + "'" +
                    (text.find('/') == std::string::npos
                         ? ""
                         : ": a UDP port stands in front of the colon, HOST/UDPPORT:PORT"));
  out = ntohs(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_port);
  return 0;
}

bool is_host_character(unsigned char c) {
  return c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// To a host that has only the other family than `family`, that of the link.
std::string other_way_to(const Backend& backend, int family) {
  if (backend.udp_port() != 0)
    return std::string("or open the link for both (udp:) on a host that has ") +
           (family == AF_INET6 ? "IPv4" : "IPv6") + ", too";
  if (backend.internet())
    return std::string("open a link for such addresses (ip:") + (family == AF_INET ? "[::]" : "") +
           "), or for both (udp:)";
  return "use a udp: link, or give the MAC address ([02:00:00:00:00:01]:PORT)";
}

// `family`: the only one that the link has.
int fail_to_find(const Backend& backend, const std::string& host, int family) {
  const std::string has = family == AF_INET6
                              ? "' has an IPv4 address only, and this link has an IPv6 address"
                              : "' has an IPv6 address only, and this link has IPv4 addresses";
  return fail(-EHOSTUNREACH,
              "host '" + host + has + ": name another one, " + other_way_to(backend, family));
}

std::string text_of(const Place& place) {
  return port::host_of(place.address) + (place.zone.empty() ? "" : "%" + place.zone);
}

int fail_to_reach(const Place& place) {
  const auto& address = place.address;
  const auto host = text_of(place);
  if (address.is_link_local() && place.zone.empty())
    return fail(-EHOSTUNREACH, "'" + host +
                                   "' is an address of each network: name the interface that leads "
                                   "there, as in [" +
                                   host + "%eth0]");
  if (!address.is_link_local() && !address.is_host())
    return fail(-EHOSTUNREACH, host + " is the address of many hosts, or of none: name one host");
  return fail(-EHOSTUNREACH, "the link has no " + std::string(address.ipv4() ? "IPv4" : "IPv6") +
                                 " address, and so it cannot reach " + host +
                                 ": open it for both (udp:), or at an address of that kind");
}

bool has_no_peer(const Backend& backend) {
  return backend.page().link_state.load(std::memory_order_relaxed) ==
         static_cast<std::uint32_t>(port::LinkState::kNoPeer);
}

int fail_to_ask(Backend& backend, const Place& place) {
  auto text = "nobody answers for " + text_of(place) + " on the link";
  if (const auto trouble = trouble_of(backend); !trouble.empty())
    text += ", which has trouble: " + trouble;
  return fail(-ETIMEDOUT, text);
}

int fail_to_find_zone(const Place& place) {
  return fail(-EHOSTUNREACH, text_of(place) + ": the host that drives the link has no interface '" +
                                 place.zone + "': 'ip link' lists them there");
}

ask::Resolve question_for(const Place& place) {
  ask::Resolve request{};
  if (const auto four = place.address.ipv4())
    request.ipv4 = four->value;
  else
    std::ranges::copy(place.address.ip, request.ip);
  ipc::set_text(request.zone, place.zone);
  request.udp_port = place.address.port;
  return request;
}

// host/8182: takes the UDP port off.
int parse_udp_port(std::string& text, std::uint16_t& out) {
  const auto slash = text.rfind('/');
  if (slash == std::string::npos) return 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, out);
  if (problem != std::errc{} || stop != end || out == 0)
    return fail(-EINVAL, "'" + text + "': a UDP port, 1 to 65535, stands after the slash");
  text.resize(slash);
  return 0;
}

// [02:00:00:00:00:01] or [2001:db8::5].
int parse_brackets(const std::string& text, Host& out) {
  const auto inside = text.ends_with(']') ? text.substr(1, text.size() - 2) : std::string();
  if (const auto mac = port::parse_mac(inside)) {
    if (mac->is_group() || mac->is_zero())
      return fail(-EINVAL, "'" + text + "' is not the address of one station");
    if (out.udp_port != 0) return fail(-EINVAL, "'" + text + "': a MAC address has no UDP port");
    out.name = text;
    out.mac = *mac;
    out.has_mac = true;
    return 0;
  }
  const auto percent = inside.find('%');
  const auto has_zone = percent != std::string::npos;
  const auto address = port::parse_internet_address(inside.substr(0, percent));
  if (address && address->ipv4())
    return fail(-EINVAL, "'" + text + "' is an IPv4 address: write " + port::host_of(*address));
  if (has_zone) out.zone = inside.substr(percent + 1);
  const auto fits = !out.zone.empty() && out.zone.size() < ipc::kTextSize;
  if (has_zone && (!address || !address->is_link_local() || !fits))
    return fail(-EINVAL, "'" + text + "' is not a link-local IPv6 address with the name of an " +
                             "interface, as [fe80::1%eth0]");
  if (!address)
    return fail(-EINVAL, "'" + text +
                             "' is not a MAC address, as [02:00:00:00:00:01], or an IPv6 address, "
                             "as [2001:db8::5]");
  out.name = inside.substr(0, percent);
  return 0;
}

// What the resolver of this process knows of an interface is a number here. The link may be driven
// in another network namespace, where the name can mean something.
void give_zone(Place& place) {
  std::array<char, IF_NAMESIZE> name{};
  const auto scope = std::exchange(place.address.scope, 0);
  if (scope != 0 && place.zone.empty() && ::if_indextoname(scope, name.data()) != nullptr)
    place.zone = name.data();
}

// One that stands in brackets, and lacks them: 2001:db8::5, 02:00:00:00:00:01.
bool lacks_brackets(const std::string& host) {
  return port::parse_mac(host).has_value() ||
         port::parse_internet_address(host.substr(0, host.find('%'))).has_value();
}
std::string in_brackets(const std::string& host) {
  return lacks_brackets(host) ? ": write it in brackets, [" + host + "]" : "";
}

// As it stands before a port.
std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

// AF_UNSPEC: the link has both.
int family_of(const Backend& backend) {
  if (!backend.ipv6()) return AF_INET;
  return backend.ipv4() != 0 ? AF_UNSPEC : AF_INET6;
}

// Looks for the other family, too, only where that makes a text: a resolver that leaves such
// questions unanswered would hold up everybody.
int look_up_places(const Backend& backend, const Host& host, Places& out) {
  const auto* const name = host.name.empty() ? "localhost" : host.name.c_str();
  const auto family = family_of(backend);
  const auto found = look_up(name, nullptr, family);
  if (found == nullptr && (family == AF_UNSPEC || look_up(name, nullptr, AF_UNSPEC) == nullptr))
    return fail(-EHOSTUNREACH, "no host is called '" + host.name + "'");
  if (found == nullptr) return fail_to_find(backend, host.name, family);
  for (const auto* at = found.get(); at != nullptr && out.all.size() < Places::kMost;
       at = at->ai_next) {
    Place place{port::from_socket_address(at->ai_addr).value(), host.zone};
    place.address.port = host.udp_port != 0 ? host.udp_port : backend.peer_udp_port();
    give_zone(place);
    if (std::ranges::find(out.all, place) == out.all.end()) out.all.push_back(std::move(place));
  }
  return 0;
}

}  // namespace

int parse_host(const std::string& text, Host& out) {
  out = {};
  auto host = text;
  if (const auto error = parse_udp_port(host, out.udp_port); error != 0) return error;
  if (host.starts_with('[')) return parse_brackets(host, out);
  if (!std::all_of(host.begin(), host.end(), is_host_character))
    return fail(-EINVAL, "'" + text + "' is not a host name" + in_brackets(host));
  out.name = host;
  return 0;
}

int parse_name(const std::string& text, Name& out) {
  const auto colon = text.rfind(':');
  const auto bracket = text.rfind(']');
  const bool is_inside = bracket != std::string::npos && colon < bracket;
  if (colon == std::string::npos || colon + 1 == text.size() || is_inside)
    return fail(-EINVAL, "'" + text +
                             "' does not have the form host:port (10.9.0.2:3000, or :3000 of this "
                             "host)");
  // 2001:db8::5 has no port, and 2001:db8::5:3000 is an address, too, but may be meant to have one.
  const auto host = text.substr(0, colon);
  if (!lacks_brackets(host) && lacks_brackets(text))
    return fail(-EINVAL, "'" + text + "' is an address without a port: write [" + text + "]:PORT");
  if (const auto error = parse_host(host, out.host); error != 0) return error;
  return parse_port(text.substr(colon + 1), out.uport);
}

std::string name_of(const Place& place) {
  return bracketed(text_of(place));
}

int find_places(Backend& backend, const Host& host, Places& out) {
  out = {};
  out.host = host.name;
  out.station = host.has_mac ? host.mac : backend.mac();
  if (host.has_mac) return 0;
  const auto own = backend.udp_port();
  if (host.udp_port != 0 && own == 0)
    return fail(-EINVAL, "'" + host.name + "/" + std::to_string(host.udp_port) +
                             "': the link's stations have no UDP ports, only those of a udp: link");
  // Without a name, the link itself; "localhost" may also be another program's link on this host.
  const auto unnamed = host.name.empty() ? own : backend.peer_udp_port();
  const bool names_us = host.name.empty() || host.name == "localhost";
  if (names_us && (host.udp_port != 0 ? host.udp_port : unnamed) == own) return 0;
  return look_up_places(backend, host, out);
}

int ask_station(Backend& backend, const Place& place, MacAddr& out) {
  ask::Resolve::Reply reply{};
  const auto error = backend.call(question_for(place), reply);
  if (error == 0) out = MacAddr::from_u64(reply.mac);
  if (error == -EHOSTUNREACH) return fail_to_reach(place);
  if (error == -ENODEV && !place.zone.empty()) return fail_to_find_zone(place);
  return error;
}

// The time for an answer begins when there is somebody who could give one.
int await_station(Backend& backend, const Place& place, const Patience& patience,
                  const std::function<bool()>& unwanted, MacAddr& out) {
  const auto begin = now();
  const auto opened_by = std::min(patience.deadline, begin + kPeerPatience);
  auto answer_by = begin + kArpPatience;
  for (;;) {
    if (const auto error = ask_station(backend, place, out); error != -EAGAIN) return error;
    if (unwanted && unwanted()) return -ECANCELED;
    const auto time = now();
    if (has_no_peer(backend) && time < opened_by) answer_by = time + kArpPatience;
    if (time >= std::min({answer_by, patience.limit, patience.deadline}))
      return fail_to_ask(backend, place);
    pause(backend, kArpInterval);
  }
}

// They share what time there is only when somebody could answer. What needs no answer, as the
// link's own address, is known at once.
void await_peer(Backend& backend, const Places& places, Time deadline,
                const std::function<bool()>& unwanted) {
  if (places.all.size() < 2) return;
  const auto until = std::min(deadline, now() + kPeerPatience);
  MacAddr ignored;
  const auto is_answered = [&](const Place& place) {
    return ask_station(backend, place, ignored) != -EAGAIN;
  };
  while (has_no_peer(backend) && now() < until && !(unwanted && unwanted()) &&
         std::ranges::none_of(places.all, is_answered))
    pause(backend, kArpInterval);
}

int resolve(Backend& backend, const Host& host, MacAddr& out) {
  Places places;
  auto error = find_places(backend, host, places);
  out = places.station;
  if (places.all.empty()) return error;
  await_peer(backend, places, kNever, {});
  Tries tries(std::move(places));
  const auto until = tries.has_news() ? now() + kArpPatience : kNever;
  do {
    tries.begin(now(), until);
    error = await_station(backend, tries.present(), {kNever, tries.ask_by()}, {}, out);
    if (error != 0) tries.give_up("");
  } while (error != 0 && !tries.is_over() && now() < until);
  return error;
}

// The link knows its own addresses at once: an address for which it has to ask is another host's.
// A UDP port that is not named is the link's own one here, not the one that peers usually have.
int check_own(Backend& backend, const Host& host) {
  Places places;
  auto here = host;
  if (here.udp_port == 0 && !here.has_mac) here.udp_port = backend.udp_port();
  auto error = find_places(backend, here, places);
  auto mac = places.station;
  for (const auto& place : places.all) {
    error = ask_station(backend, place, mac);
    if (error == 0 && mac == backend.mac()) break;
  }
  if (error != 0 && error != -EAGAIN) return error;
  if (error == 0 && mac == backend.mac()) return 0;
  return fail(-EADDRNOTAVAIL,
              "'" + host.name + "' is not " +
                  (backend.one_address() ? "the address of this link" : "this host"));
}

}  // namespace stp::client
