// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/links.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>

#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

constexpr char kSockets[] = "/run/stpd";

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Interfaces interfaces() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) all = nullptr;
  return {all, ::freeifaddrs};
}

std::uint32_t host_order(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

// `needed`: flags. One that is named may be without a carrier for the moment.
bool is_usable(const ifaddrs& interface, unsigned needed) {
  return interface.ifa_addr != nullptr && interface.ifa_addr->sa_family == AF_INET &&
         interface.ifa_netmask != nullptr && (interface.ifa_flags & needed) == needed &&
         (interface.ifa_flags & (IFF_LOOPBACK | IFF_POINTOPOINT)) == 0;
}

void take_address(const ifaddrs& interface, LinkFacts& link) {
  link.ipv4 = host_order(interface.ifa_addr);
  link.prefix_length = static_cast<unsigned>(std::popcount(host_order(interface.ifa_netmask)));
}

// "10.9.0.1/24"
bool parse_address(const std::string& text, LinkFacts& link) {
  const auto slash = text.find('/');
  in_addr address{};
  if (::inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1) return false;
  link.ipv4 = ntohl(address.s_addr);
  if (slash == std::string::npos) return true;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, link.prefix_length);
  return parsed.ec == std::errc() && parsed.ptr == end && link.prefix_length <= 32;
}

// The value of ",address=" in a link's text.
std::string address_option(const std::string& text) {
  constexpr std::string_view kOption = ",address=";
  const auto at = text.find(kOption);
  if (at == std::string::npos) return {};
  const auto from = at + kOption.size();
  return text.substr(from, text.find(',', from) - from);
}

// False: peers could not name it. The log says why.
bool describe(const std::string& text, LinkFacts& link) {
  link.text = text;
  const auto colon = text.find_first_of(":,");
  const auto kind = text.substr(0, colon);
  if (kind == "stpd") return true;
  const auto given = address_option(text);
  if (!given.empty()) {
    if (parse_address(given, link)) return true;
    inform(FI_LOG_CORE, "link " + text + ": address= is not ADDRESS/PREFIX: " + given);
    return false;
  }
  if (kind == "loop") {
    link.ipv4 = INADDR_LOOPBACK;
    link.prefix_length = 8;
    return true;
  }
  if (kind != "iface" || colon == std::string::npos) {
    inform(FI_LOG_CORE, "link " + text + " has no IPv4 address: give it one (address=10.9.0.1/24)");
    return false;
  }
  const auto name = text.substr(colon + 1, text.find(',') - colon - 1);
  const auto all = interfaces();
  for (const auto* i = all.get(); i != nullptr; i = i->ifa_next)
    if (name == i->ifa_name && is_usable(*i, IFF_UP)) return take_address(*i, link), true;
  inform(FI_LOG_CORE, "link " + text + ": no such interface that is up and has an IPv4 address");
  return false;
}

bool may_open_raw_sockets() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &head, data) != 0) return false;
  return (data[0].effective >> CAP_NET_RAW & 1U) != 0;
}

void find_daemons(std::vector<LinkFacts>& links) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(kSockets), ::closedir);
  if (!folder) return;
  constexpr std::string_view kEnd = ".sock";
  while (const auto* const entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    const auto path = std::string(kSockets).append("/").append(name);
    if (!name.ends_with(kEnd)) continue;
    if (::access(path.c_str(), W_OK) == 0)
      links.push_back({.text = "stpd:" + path});
    else
      inform(FI_LOG_CORE, path + ": this user may not connect to it");
  }
  std::ranges::sort(links, {}, &LinkFacts::text);
}

void find_interfaces(std::vector<LinkFacts>& links) {
  if (!may_open_raw_sockets()) {
    inform(FI_LOG_CORE, "interfaces are left out: CAP_NET_RAW is needed to use one without stpd");
    return;
  }
  const auto all = interfaces();
  for (const auto* i = all.get(); i != nullptr; i = i->ifa_next) {
    if (!is_usable(*i, IFF_UP | IFF_RUNNING)) continue;
    LinkFacts link{.text = std::string("iface:") + i->ifa_name};
    take_address(*i, link);
    if (std::ranges::find(links, link.text, &LinkFacts::text) == links.end()) links.push_back(link);
  }
}

}  // namespace

std::vector<LinkFacts> find_links() {
  std::vector<LinkFacts> links;
  if (const auto named = parameters().link; !named.empty()) {
    if (LinkFacts link; describe(named, link)) links.push_back(link);
    return links;
  }
  find_daemons(links);
  find_interfaces(links);
  return links;
}

bool may_reach(const LinkFacts& link, std::uint32_t ipv4) {
  constexpr unsigned kBits = 32;
  if (link.ipv4 == 0 || link.prefix_length == 0 || ipv4 >> 24 == IN_LOOPBACKNET) return true;
  return ((link.ipv4 ^ ipv4) >> (kBits - link.prefix_length)) == 0;
}

}  // namespace stp::fi
