// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/links.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "dpdk_port/link/ipv4_addresses.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

constexpr char kSockets[] = "/run/stpd";

unsigned flags_of(const std::string& any_name) {
  const auto name = port::name_of_interface(any_name);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  ifreq question{};
  name.copy(question.ifr_name, sizeof question.ifr_name - 1);
  const bool known = ::ioctl(fd, SIOCGIFFLAGS, &question) == 0;
  ::close(fd);
  return known ? static_cast<unsigned short>(question.ifr_flags) : 0;
}

// `needed`: flags. One that is named may be without a carrier for the moment.
bool is_usable(unsigned flags, unsigned needed) {
  return (flags & needed) == needed && (flags & (IFF_LOOPBACK | IFF_POINTOPOINT)) == 0;
}

void take_address(const port::InterfaceAddress& address, LinkFacts& link) {
  link.ipv4 = address.ipv4;
  link.prefix_length = address.prefix_length;
}

std::vector<port::InterfaceAddress> addresses() {
  auto all = port::ipv4_addresses();
  if (!all) inform(FI_LOG_CORE, "the kernel does not tell the addresses of interfaces (rtnetlink)");
  return all ? std::move(*all) : std::vector<port::InterfaceAddress>{};
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
  if (kind == "stpd" || kind == "udp") return true;  // reaches beyond one network
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
  // Also by an alternative name.
  const auto index = port::index_of_interface(name);
  if (index != 0 && is_usable(flags_of(name), IFF_UP))
    for (const auto& each : addresses())
      if (each.index == index) return take_address(each, link), true;
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
  std::vector<int> seen;  // an interface is one link, however many addresses it has
  for (const auto& each : addresses()) {
    std::array<char, IF_NAMESIZE> name{};
    if (std::ranges::find(seen, each.index) != seen.end() ||
        ::if_indextoname(static_cast<unsigned>(each.index), name.data()) == nullptr ||
        !is_usable(flags_of(name.data()), IFF_UP | IFF_RUNNING))
      continue;
    seen.push_back(each.index);
    LinkFacts link{.text = std::string("iface:") + name.data()};
    take_address(each, link);
    links.push_back(link);
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
