// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"
#include "libst/client/error.h"
#include "libst/client/trouble.h"
#include "libst/client/wait.h"

namespace stp::client {
namespace {

constexpr Time kArpPatience = kSecond;
// Time for the program at the other end of a memif to open it.
constexpr Time kPeerPatience = 10 * kSecond;
constexpr Time kArpInterval = 5 * kMillisecond;
constexpr std::uint32_t kLoopbackNet = 127;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList look_up(const char* host, const char* service, int family = AF_INET) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, service, &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

std::uint32_t ipv4_of(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

int parse_port(const std::string& text, std::uint32_t last, std::uint32_t& out) {
  const auto* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, out);
  if (problem == std::errc{} && stop == end && out >= 1 && out <= last) return 0;
  const bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (digits) return fail(-EINVAL, "port '" + text + "' is not in 1.." + std::to_string(last));
  const auto found = look_up(nullptr, text.c_str());
  if (found == nullptr) return fail(-EINVAL, "no service is called '" + text + "'");
  out = ntohs(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_port);
  return 0;
}

bool is_host_character(unsigned char c) {
  return c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// Whether one of this machine's interfaces has the address.
bool is_own(std::uint32_t ipv4) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> held(all, &::freeifaddrs);
  for (const auto* at = all; at != nullptr; at = at->ifa_next)
    if (at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
        ipv4_of(at->ifa_addr) == ipv4)
      return true;
  return false;
}

int fail_to_find(const std::string& host) {
  if (look_up(host.c_str(), nullptr, AF_INET6) == nullptr)
    return fail(-EHOSTUNREACH, "no host is called '" + host + "'");
  return fail(-EHOSTUNREACH, "host '" + host +
                                 "' has an IPv6 address only, and links have IPv4 addresses: name "
                                 "one, or the MAC address ([02:00:00:00:00:01]:PORT)");
}

bool has_no_peer(const Backend& backend) {
  return backend.page().link_state.load(std::memory_order_relaxed) ==
         static_cast<std::uint32_t>(port::LinkState::kNoPeer);
}

int fail_to_ask(Backend& backend, std::uint32_t ipv4) {
  auto text = "nobody answers for " + port::to_string(port::Ipv4{ipv4}) + " on the link";
  if (const auto trouble = trouble_of(backend); !trouble.empty())
    text += ", which has trouble: " + trouble;
  return fail(-ETIMEDOUT, std::move(text));
}

// The time for an answer begins when there is somebody who could give one.
int ask_link(Backend& backend, std::uint32_t ipv4, Time deadline,
             const std::function<bool()>& unwanted, MacAddr& out) {
  const auto begin = now();
  const auto limit = std::min(deadline, begin + kPeerPatience);
  auto answer_by = begin + kArpPatience;
  for (;;) {
    auto request = request_for(RequestKind::kResolve);
    Reply reply{};
    request.ipv4 = ipv4;
    const auto error = backend.exchange(request, reply);
    if (error == 0) out = MacAddr::from_u64(reply.mac);
    if (error != -EAGAIN) return error;
    if (unwanted && unwanted()) return -ECANCELED;
    const auto time = now();
    if (has_no_peer(backend) && time < limit) answer_by = time + kArpPatience;
    if (time >= answer_by) return fail_to_ask(backend, ipv4);
    pause(backend, kArpInterval);
  }
}

}  // namespace

int parse_host(const std::string& text, Host& out) {
  if (text.starts_with('[')) {
    const auto mac =
        text.ends_with(']') ? port::parse_mac(text.substr(1, text.size() - 2)) : std::nullopt;
    if (!mac) return fail(-EINVAL, "'" + text + "' is not a MAC address, as [02:00:00:00:00:01]");
    if (mac->is_group() || mac->is_zero())
      return fail(-EINVAL, "'" + text + "' is not the address of one station");
    out = {.name = text, .mac = *mac, .has_mac = true};
    return 0;
  }
  if (!std::all_of(text.begin(), text.end(), is_host_character))
    return fail(-EINVAL, "'" + text + "' is not a host name");
  out = {.name = text, .mac = {}, .has_mac = false};
  return 0;
}

int parse_name(const std::string& text, Name& out, std::uint32_t last_port) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size())
    return fail(-EINVAL, "'" + text + "' does not have the form host:port");
  if (const auto error = parse_host(text.substr(0, colon), out.host); error != 0) return error;
  return parse_port(text.substr(colon + 1), last_port, out.uport);
}

int resolve(Backend& backend, const Host& host, MacAddr& out, Time deadline,
            const std::function<bool()>& unwanted) {
  out = host.has_mac ? host.mac : backend.mac();
  if (host.has_mac || host.name.empty() || host.name == "localhost") return 0;
  const auto found = look_up(host.name.c_str(), nullptr);
  if (found == nullptr) return fail_to_find(host.name);
  const auto ipv4 = ipv4_of(found->ai_addr);
  if (ipv4 >> 24 == kLoopbackNet || ipv4 == backend.ipv4() || is_own(ipv4)) return 0;
  return ask_link(backend, ipv4, deadline, unwanted, out);
}

}  // namespace stp::client
