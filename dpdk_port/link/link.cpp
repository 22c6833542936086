// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/link.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "stp/base/suggestion.h"

namespace stp::port {
namespace {

struct KindName {
  std::string_view name;
  LinkKind kind;
  std::string_view target;  // what stands after the colon, with an example
};
constexpr std::array kKinds{
    KindName{"stpd", LinkKind::kStpd, ""},
    KindName{"iface", LinkKind::kIface, "an interface name, as in iface:eth0"},
    KindName{"pci", LinkKind::kPci, "a PCI address, as in pci:0000:3b:00.0"},
    KindName{"memif", LinkKind::kMemif, "a socket path, as in memif:/run/a.sock"},
    KindName{"vdev", LinkKind::kVdev, "a DPDK device string, as in vdev:net_ring0"},
    KindName{"udp", LinkKind::kUdp, ""},
    KindName{"ip", LinkKind::kIp, ""},
    KindName{"loop", LinkKind::kLoop, ""},
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

template <typename Number = unsigned>
std::optional<Number> parse_number(std::string_view text, unsigned min, unsigned max) {
  Number value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  if (value < min || value > max) return std::nullopt;
  return value;
}

std::optional<MacAddr> parse_station(const std::string& text) {
  const auto mac = parse_mac(text);
  return mac && !mac->is_group() && !mac->is_zero() ? mac : std::nullopt;
}

// 10.9.0.1/24
std::optional<Ipv4> parse_own_address(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  if (!parse_number(std::string_view(text).substr(slash + 1), 1, 32)) return std::nullopt;
  const auto address = parse_ipv4(text.substr(0, slash));
  return address && address->value != 0 ? address : std::nullopt;
}

// 10.9.0.2@02:00:00:00:00:02; more entries follow after '+'.
std::optional<Stations> parse_stations(const std::string& text) {
  Stations stations;
  for (const std::string& entry : split(text, '+')) {
    const std::size_t at = entry.find('@');
    if (at == std::string::npos) return std::nullopt;
    const auto ip = parse_ipv4(entry.substr(0, at));
    const auto mac = parse_station(entry.substr(at + 1));
    if (!ip || ip->value == 0 || !mac) return std::nullopt;
    if (!stations.emplace(*ip, *mac).second) return std::nullopt;
  }
  return stations;
}

// A socket for all addresses, or for an interface, carries IPv6.
unsigned least_mtu(const LinkConfig& link) {
  if (link.kind == LinkKind::kUdp) return parse_ipv4(link.target) ? kMinUdpMtu : kMinUdpMtuOverIpv6;
  if (link.kind != LinkKind::kIp) return kMinMtu;
  return link.target.starts_with('[') ? kMinIpMtuOverIpv6 : kMinIpMtu;
}

std::string_view mtus_of(LinkKind kind) {
  if (kind == LinkKind::kUdp) return "a number from 388 (over IPv6 from 408) to 65640";
  if (kind == LinkKind::kIp) return "a number from 380 (over IPv6 from 400) to 65640";
  return "a number from 360 to 65640";
}

template <typename Value>
std::optional<Value> one_of(const std::string& text,
                            std::initializer_list<std::pair<std::string_view, Value>> values) {
  for (const auto& [name, value] : values)
    if (name == text) return value;
  return std::nullopt;
}

struct LinkOption {
  std::string_view name;
  bool (*is_of)(LinkKind kind);
  bool (*set)(const std::string& text, LinkConfig& link);  // false: the value is illegal
  std::string_view (*right)(LinkKind kind);

  [[nodiscard]] std::string_view name_in(LinkKind kind) const {
    return kind == LinkKind::kVdev && name == "queues" ? "shards" : name;
  }
};
constexpr std::array kLinkOptions{
#define STP_ROW(of_kind, name, type, usual, value, right)                   \
  LinkOption{#name, []([[maybe_unused]] LinkKind kind) { return of_kind; }, \
             [](const std::string& text, LinkConfig& link) {                \
               const std::optional parsed = value;                          \
               if (parsed) link.name = *parsed;                             \
               return parsed.has_value();                                   \
             },                                                             \
             []([[maybe_unused]] LinkKind kind) -> std::string_view { return right; }},
    STP_LINK_OPTIONS(STP_ROW)
#undef STP_ROW
};

std::vector<std::string_view> option_names(LinkKind kind) {
  std::vector<std::string_view> names;
  for (const auto& option : kLinkOptions) {
    if (option.is_of(kind)) names.push_back(option.name_in(kind));
  }
  return names;
}

// `meant`: "": nobody knows.
std::string did_you_mean(const std::string& meant) {
  return meant.empty() ? "" : "; did you mean " + meant + "?";
}

std::string no_option(const std::string& name, LinkKind kind) {
  const auto names = option_names(kind);
  std::string list;
  for (const auto& each : names) (list += list.empty() ? "" : ", ") += each;
  const auto meant = std::string(similar_word(name, names));
  return "no option '" + name + "' here; there are " + list +
         did_you_mean(meant.empty() ? "" : meant + "=");
}

std::string wrong_value(const std::string& option, std::string_view right) {
  return "'" + option + "' is not legal: give " + std::string(right);
}

// Returns the fault; "": none.
std::string parse_option(const std::string& option, LinkConfig& out) {
  const std::size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  for (const auto& known : kLinkOptions) {
    if (known.name_in(out.kind) != name || !known.is_of(out.kind)) continue;
    return known.set(value, out) ? "" : wrong_value(option, known.right(out.kind));
  }
  if (out.kind == LinkKind::kVdev) {
    out.target += ',' + option;
    return "";
  }
  return no_option(name, out.kind);
}

bool is_pci_address(const std::string& text) {
  constexpr std::string_view kForm = "hhhh:hh:hh.o";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
           if (form == 'o') return c >= '0' && c <= '7';
           if (form == 'h') return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           return c == form;
         });
}

constexpr std::size_t kMaxInterfaceName = 127;  // of an alternative one: ALTIFNAMSIZ, less the zero
constexpr std::size_t kMaxSocketPath = 107;

// The kernel takes eth0:1 for eth0.
std::string check_interface(const std::string& name) {
  if (name.size() > kMaxInterfaceName) return "an interface name has at most 127 characters";
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos) return "";
  const auto before = name.substr(0, colon);
  return "'" + name + "' is no interface name, which has no colon: write iface:" +
         (before.empty() ? "eth0" : before) +
         ", and options after commas; address= chooses one of several addresses";
}

// DPDK takes net_ring0:1 for one more device of the driver net_ring.
std::string check_device(const std::string& device) {
  const auto name = device.substr(0, device.find(','));
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos) return "";
  const auto before = name.substr(0, colon);
  return "'" + name + "' is no name of a DPDK device, which has no colon: write vdev:" +
         (before.empty() ? "net_ring0" : before) + ", and options after commas";
}

// 10.0.0.5:8181, [2001:db8::5]/8181 and the like. "": it does not end so.
std::string udp_port_in(const std::string& target) {
  const std::size_t before = target.find_last_of(":/");
  if (before == std::string::npos || !parse_number(target.substr(before + 1), 0, 65'535)) return "";
  const auto host = target.substr(0, before);
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  const bool clear = target[before] == '/' || brackets || host.find(':') == std::string::npos;
  return clear ? target.substr(before + 1) : "";
}

// Of a target that ends with `port`.
std::string how_to_write(const std::string& target, const std::string& port,
                         const std::string& kind) {
  const std::size_t before = target.size() - port.size() - 1;
  const auto address = kind + target.substr(0, before);
  const bool slash = target[before] == '/';
  if (kind != "udp:")
    return "'" + target + "' has a port" + (slash ? " or prefix length" : "") +
           ", and IP itself has none: write " + address;
  return "'" + target + "' has a " +
         (slash ? "slash, and an address here has no prefix length, and its UDP port is an option: "
                  "write " +
                      address + ", or "
                : "colon before the UDP port, which is an option: write ") +
         address + ",port=" + port;
}

// What cannot be an address of this host, whatever its interfaces are called. Which interfaces and
// IPv6 scopes there are is seen when the link is opened.
std::string check_internet_target(const std::string& target, const std::string& kind) {
  const auto wrong = [&](const char* why) {
    return "'" + target + "' " + why + ": after " + kind +
           " stands 10.0.0.5, [2001:db8::5], an interface such as eth0, or nothing for all "
           "addresses";
  };
  if (target == "localhost")
    return "localhost is a host and no interface: write " + kind + "127.0.0.1";
  if (target.size() > kMaxInterfaceName) return "an interface name has at most 127 characters";
  if (const auto port = udp_port_in(target); !port.empty()) return how_to_write(target, port, kind);
  const bool brackets = target.starts_with('[') && target.ends_with(']');
  const std::string text = brackets ? target.substr(1, target.size() - 2) : target;
  if (text.find(':') != std::string::npos) {
    in6_addr six;
    const bool legal = ::inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &six) == 1;
    if (!legal) return wrong("is no IPv6 address");
    if (six.s6_addr[0] == 0xff) return wrong("is an address of many hosts");
    if (const auto same = parse_internet_address(text); same && same->ipv4())
      return "'" + target + "' is an IPv4 address: write " + kind + host_of(*same);
    if (IN6_IS_ADDR_LINKLOCAL(&six) && text.find('%') == std::string::npos)
      return wrong("needs its interface, as in [fe80::1%eth0]");
    return "";
  }
  if (brackets) return wrong("is no IPv6 address, and only these stand in brackets");
  if (target.find_first_of("/[] ") != std::string::npos) return wrong("is no name of an interface");
  if (target.empty() || target.find_first_not_of("0123456789.") != std::string::npos) return "";
  const auto four = parse_ipv4(target);
  if (!four) return wrong("is no IPv4 address");
  const bool many = four->value >> 29 == 7 || (four->value != 0 && four->value >> 24 == 0);
  return many ? wrong("is an address of many hosts, or none") : "";
}

std::string check_target(const LinkConfig& link) {
  const std::string& target = link.target;
  switch (link.kind) {
    case LinkKind::kIface:
      return check_interface(target);
    case LinkKind::kPci:
      if (!is_pci_address(target)) return "a PCI address is written like 0000:3b:00.0";
      break;
    case LinkKind::kStpd:
    case LinkKind::kMemif:
      if (target.size() > kMaxSocketPath) return "a socket path has at most 107 characters";
      break;
    case LinkKind::kUdp:
      return check_internet_target(target, "udp:");
    case LinkKind::kIp:
      return check_internet_target(target, "ip:");
    case LinkKind::kVdev:
      return check_device(target);
    case LinkKind::kLoop:
      break;
  }
  return "";
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '@';
  });
}

// The link that somebody may have meant with what is none. "": nobody knows.
std::string link_meant_by(const std::string& head) {
  std::vector<std::string_view> kinds;
  for (const auto& kind : kKinds) kinds.push_back(kind.name);
  const std::size_t colon = head.find(':');
  const auto similar = std::string(similar_word(head.substr(0, colon), kinds));
  if (!similar.empty()) return similar + (colon == std::string::npos ? "" : head.substr(colon));
  if (is_pci_address(head)) return "pci:" + head;
  if (parse_ipv4(head) || head.starts_with('[')) return "udp:" + head;
  if (head.find('/') != std::string::npos) return "stpd:" + head;
  if (head.starts_with("net_")) return "vdev:" + head;
  return is_word(head) ? "iface:" + head : "";
}

std::string parse_kind(const std::string& head, LinkConfig& out) {
  const std::size_t colon = head.find(':');
  const std::string name = head.substr(0, colon);
  const auto known = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&name](const KindName& kind) { return kind.name == name; });
  if (known == kKinds.end()) {
    return "a link starts with stpd:, iface:, pci:, memif:, vdev:, udp: or ip:, or is loop" +
           did_you_mean(link_meant_by(head));
  }
  out.kind = known->kind;
  if (colon != std::string::npos) out.target = head.substr(colon + 1);
  const bool wants_target =
      out.kind != LinkKind::kLoop && out.kind != LinkKind::kStpd && !is_internet(out.kind);
  if (wants_target && out.target.empty()) {
    return "after " + name + ": stands " + std::string(known->target);
  }
  if (out.kind == LinkKind::kLoop && colon != std::string::npos) {
    return "loop has nothing after it but options";
  }
  return check_target(out);
}

std::string parse(const std::string& text, LinkConfig& out) {
  const std::vector<std::string> parts = split(text, ',');
  if (std::string wrong = parse_kind(parts.front(), out); !wrong.empty()) return wrong;
  if (out.kind == LinkKind::kStpd && parts.size() > 1) {
    return "stpd: has no options: the daemon has its own link";
  }
  std::vector<std::string> names;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string name = parts[i].substr(0, parts[i].find('='));
    if (name.empty()) return "an option is missing before or after a comma";
    // A device string may repeat its options: net_pcap takes several files this way.
    if (out.kind != LinkKind::kVdev && std::find(names.begin(), names.end(), name) != names.end()) {
      return "option '" + name + "' stands twice";
    }
    names.push_back(std::move(name));
    if (std::string wrong = parse_option(parts[i], out); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

bool parse_link(const std::string& text, LinkConfig& out, std::string& error) {
  LinkConfig link;
  link.text = text;
  const std::string wrong = parse(text, link);
  if (!wrong.empty()) {
    error = "link '" + text + "': " + wrong;
    return false;
  }
  out = std::move(link);
  return true;
}

}  // namespace stp::port
