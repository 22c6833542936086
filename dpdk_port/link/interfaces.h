// SPDX-License-Identifier: BSD-3-Clause
// Network interfaces of this host: what each one is, what changes, what links lack that need one,
// and the packet sockets that are kept for them.
#pragma once

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/asked_aside.h"
#include "dpdk_port/link/link.h"
#include "stp/types.h"

namespace stp::port {

// ---- What the kernel tells when it is asked. By ioctl what each one is. As getifaddrs() has them
// all their addresses. By rtnetlink their IPv4 addresses, also those with a label (eth0:1), which
// ioctl and getifaddrs tell as if of another interface; and which one has an alternative name, of
// up to 127 characters. Needs no source of the project.

// An interface of this network namespace, as the kernel knows it. What is mounted at /sys may be
// that of another namespace.
struct KernelInterface {
  std::string name;
  int index = 0;       // 0: there is no such interface
  unsigned flags = 0;  // IFF_UP, ...
  unsigned type = 0;   // ARPHRD_ETHER, ...; not of one without an address
  unsigned mtu = 0;    // bytes of the longest packet; 0: not known
  MacAddr mac;

  [[nodiscard]] bool has(unsigned all) const { return (flags & all) == all; }
};

// A socket for questions by ioctl.
class InterfaceSocket {
 public:
  InterfaceSocket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~InterfaceSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  InterfaceSocket(const InterfaceSocket&) = delete;
  InterfaceSocket& operator=(const InterfaceSocket&) = delete;

  // `answer` may have what belongs to the question. False: see errno.
  bool ask(unsigned long what, const std::string& name, ifreq& answer) const {
    std::memset(answer.ifr_name, 0, sizeof answer.ifr_name);
    name.copy(answer.ifr_name, sizeof answer.ifr_name - 1);
    return ::ioctl(fd_, what, &answer) == 0;
  }
  // By the kernel's own name. If anything is missing, errno says why the last such thing is.
  [[nodiscard]] KernelInterface look_up(const std::string& name) const {
    KernelInterface out;
    out.name = name;
    ifreq answer{};
    if (!ask(SIOCGIFINDEX, name, answer)) return out;
    out.index = answer.ifr_ifindex;
    if (ask(SIOCGIFFLAGS, name, answer)) out.flags = static_cast<unsigned short>(answer.ifr_flags);
    if (ask(SIOCGIFHWADDR, name, answer)) {
      out.type = answer.ifr_hwaddr.sa_family;
      std::memcpy(out.mac.octets.data(), answer.ifr_hwaddr.sa_data, out.mac.octets.size());
    }
    if (ask(SIOCGIFMTU, name, answer)) out.mtu = static_cast<unsigned>(answer.ifr_mtu);
    return out;
  }

 private:
  int fd_;
};

// By the kernel's own name.
inline KernelInterface ask_for_interface(const std::string& name) {
  return InterfaceSocket().look_up(name);
}

inline unsigned mtu_of(const std::string& interface) {
  return ask_for_interface(interface).mtu;
}

// All of them, sorted by name.
inline std::vector<KernelInterface> ask_for_interfaces() {
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> names(
      ::if_nameindex(), &::if_freenameindex);
  const InterfaceSocket socket;
  std::vector<KernelInterface> all;
  for (const auto* each = names.get(); each != nullptr && each->if_index != 0; ++each) {
    all.push_back(socket.look_up(each->if_name));
    if (all.back().index == 0) all.pop_back();  // it has gone
  }
  std::ranges::sort(all, {}, &KernelInterface::name);
  return all;
}

// The MTU of the interface with the longest packets that is up, but for the loopback one; 0: none.
inline unsigned most_mtu() {
  unsigned most = 0;
  for (const KernelInterface& at : ask_for_interfaces())
    if (at.has(IFF_UP) && !at.has(IFF_LOOPBACK)) most = std::max(most, at.mtu);
  return most;
}

struct InterfaceAddress {
  int index = 0;           // of the interface
  std::uint32_t ipv4 = 0;  // host order
  unsigned prefix_length = 0;
};

namespace rtnetlink {

inline bool ask_for_addresses(int fd, int index) {
  // Kernels before 4.20 tell all addresses.
  const int strict = 1;
  ::setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof strict);
  struct {
    nlmsghdr head;
    ifaddrmsg body;
  } request{};
  request.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof request.body));
  request.head.nlmsg_type = RTM_GETADDR;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.ifa_family = AF_INET;
  request.body.ifa_index = static_cast<unsigned>(index);
  return ::send(fd, &request, request.head.nlmsg_len, 0) ==
         static_cast<ssize_t>(request.head.nlmsg_len);
}

inline void read_address(const nlmsghdr& message, std::vector<InterfaceAddress>& out) {
  if (message.nlmsg_type != RTM_NEWADDR || message.nlmsg_len < NLMSG_LENGTH(sizeof(ifaddrmsg)))
    return;
  const auto* const body = static_cast<const ifaddrmsg*>(NLMSG_DATA(&message));
  if (body->ifa_family != AF_INET) return;
  InterfaceAddress found{
      .index = static_cast<int>(body->ifa_index), .ipv4 = 0, .prefix_length = body->ifa_prefixlen};
  auto left = static_cast<int>(IFA_PAYLOAD(&message));
  for (const rtattr* at = IFA_RTA(body); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    // Of a connection between two hosts, IFA_ADDRESS is that of the other one.
    const bool own = at->rta_type == IFA_LOCAL || (at->rta_type == IFA_ADDRESS && found.ipv4 == 0);
    if (!own || RTA_PAYLOAD(at) < sizeof found.ipv4) continue;
    std::memcpy(&found.ipv4, RTA_DATA(at), sizeof found.ipv4);
    found.ipv4 = ntohl(found.ipv4);
  }
  if (found.ipv4 != 0) out.push_back(found);
}

// Reads messages of an answer. False: it was the last part, or `failed`.
template <typename Read>
bool read_part(int fd, Read&& read, bool& failed) {
  alignas(nlmsghdr) std::array<char, 16'384> part;
  const ssize_t size = ::recv(fd, part.data(), part.size(), 0);
  if (size < 0 && errno == EINTR) return true;
  failed = size <= 0;
  auto left = static_cast<unsigned>(failed ? 0 : size);
  for (const auto* at = reinterpret_cast<const nlmsghdr*>(part.data()); NLMSG_OK(at, left);
       at = NLMSG_NEXT(at, left)) {
    if (at->nlmsg_type == NLMSG_DONE) return false;
    if (at->nlmsg_type == NLMSG_ERROR) failed = true;
    read(*at);
  }
  return !failed;
}

inline bool ask_for_names(int fd) {
  struct {
    nlmsghdr head;
    ifinfomsg body;
  } request{};
  request.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof request.body));
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  return ::send(fd, &request, request.head.nlmsg_len, 0) ==
         static_cast<ssize_t>(request.head.nlmsg_len);
}

inline void read_names(const nlmsghdr& message,
                       std::vector<std::pair<std::string, unsigned>>& out) {
  if (message.nlmsg_type != RTM_NEWLINK || message.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg)))
    return;
  const auto* const body = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  const auto name = [&](const rtattr* at) {
    const auto* const text = static_cast<const char*>(RTA_DATA(at));
    out.emplace_back(std::string(text, ::strnlen(text, RTA_PAYLOAD(at))),
                     static_cast<unsigned>(body->ifi_index));
  };
  auto left = static_cast<int>(IFLA_PAYLOAD(&message));
  for (const rtattr* at = IFLA_RTA(body); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type == IFLA_IFNAME) name(at);
    if ((at->rta_type & NLA_TYPE_MASK) != IFLA_PROP_LIST) continue;
    auto inside = static_cast<int>(RTA_PAYLOAD(at));
    for (const auto* each = static_cast<const rtattr*>(RTA_DATA(at)); RTA_OK(each, inside);
         each = RTA_NEXT(each, inside))
      if (each->rta_type == IFLA_ALT_IFNAME) name(each);
  }
}

// Longer names can only be alternative ones.
inline constexpr std::size_t kMostOfName = IFNAMSIZ - 1, kMostOfAlternativeName = 127;

// 0: there is no such interface, or a kernel before 5.5.
inline int find_alternative_name(int fd, const std::string& name) {
  struct {
    nlmsghdr head;
    ifinfomsg body;
    rtattr attribute;
    std::array<char, kMostOfAlternativeName + 1> name;
  } request{};
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.attribute.rta_type = IFLA_ALT_IFNAME;
  request.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(name.size() + 1));
  name.copy(request.name.data(), kMostOfAlternativeName);
  request.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof request.body) +
                                                      RTA_ALIGN(request.attribute.rta_len));
  if (::send(fd, &request, request.head.nlmsg_len, 0) < 0) return 0;
  alignas(nlmsghdr) std::array<char, 16'384> answer;
  ssize_t size = 0;
  do {
    size = ::recv(fd, answer.data(), answer.size(), 0);
  } while (size < 0 && errno == EINTR);
  const auto* const message = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(ifinfomsg)))) return 0;
  if (message->nlmsg_type != RTM_NEWLINK) return 0;
  return static_cast<const ifinfomsg*>(NLMSG_DATA(message))->ifi_index;
}

}  // namespace rtnetlink

// The index of the interface with that name, which may be an alternative one. 0: there is none.
inline int index_of_interface(const std::string& name) {
  // The kernel takes eth0:1 for eth0 there.
  if (name.size() <= rtnetlink::kMostOfName && name.find(':') == std::string::npos)
    return static_cast<int>(::if_nametoindex(name.c_str()));
  if (name.size() > rtnetlink::kMostOfAlternativeName) return 0;
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return 0;
  const int index = rtnetlink::find_alternative_name(fd, name);
  ::close(fd);
  return index;
}

// What the kernel itself calls the interface. Without one: the name as it is, or, if that is too
// long for questions by ioctl, "".
inline std::string name_of_interface(const std::string& name) {
  std::array<char, IFNAMSIZ> own{};
  const int index = index_of_interface(name);
  if (index == 0 || ::if_indextoname(static_cast<unsigned>(index), own.data()) == nullptr)
    return name.size() <= rtnetlink::kMostOfName ? name : std::string();
  return own.data();
}

// In the kernel's order, the first one of each interface first. `index`: of that interface at
// least; 0: of all. nullopt: rtnetlink is not to be had (a sandbox may forbid it).
inline std::optional<std::vector<InterfaceAddress>> ipv4_addresses(int index = 0) {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return std::nullopt;
  std::vector<InterfaceAddress> all;
  bool failed = !rtnetlink::ask_for_addresses(fd, index);
  const auto read = [&all](const nlmsghdr& message) { rtnetlink::read_address(message, all); };
  while (!failed && rtnetlink::read_part(fd, read, failed)) {
  }
  ::close(fd);
  if (failed) return std::nullopt;
  return all;
}

// The names of all interfaces, alternative ones as well, each with the number of its interface.
// nullopt: as above.
inline std::optional<std::vector<std::pair<std::string, unsigned>>> names_of_interfaces() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return std::nullopt;
  std::vector<std::pair<std::string, unsigned>> all;
  bool failed = !rtnetlink::ask_for_names(fd);
  const auto read = [&all](const nlmsghdr& message) { rtnetlink::read_names(message, all); };
  while (!failed && rtnetlink::read_part(fd, read, failed)) {
  }
  ::close(fd);
  if (failed) return std::nullopt;
  return all;
}

// Each address of each interface, of any family: for (const ifaddrs* at : AllAddresses()). None has
// no ifa_addr.
class AllAddresses {
 public:
  AllAddresses() {
    ifaddrs* list = nullptr;
    known_ = ::getifaddrs(&list) == 0;
    if (!known_) return;
    list_.reset(list);
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next)
      if (at->ifa_addr != nullptr) all_.push_back(at);
  }

  // False: the kernel does not tell them, so there are none here.
  [[nodiscard]] bool are_known() const { return known_; }
  [[nodiscard]] auto begin() const { return all_.begin(); }
  [[nodiscard]] auto end() const { return all_.end(); }

 private:
  bool known_ = false;
  std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list_{nullptr, &::freeifaddrs};
  std::vector<const ifaddrs*> all_;
};

// ---- What it tells without being asked each time.

// Facts of the kernel about a network interface.
struct InterfaceFacts {
  MacAddr mac;
  unsigned mtu = 0;
  std::optional<Ipv4> address;  // its first IPv4 address
};

// The first IPv4 address of an interface, also one with a label. `name`: for systems without
// rtnetlink.
std::optional<Ipv4> first_address(const std::string& name, int index);

// False: `error` names the fault and the remedy: the interface is missing, down or not Ethernet, or
// this user may not open raw sockets.
bool look_up_interface(const std::string& name, InterfaceFacts& out, std::string& error);

// Tells that something about the interfaces of this host has changed: one of them, or an address.
// The kernel reports it by rtnetlink, so without news this costs one read of an empty socket.
// Without rtnetlink (a sandbox may forbid it) there is news at intervals.
class InterfaceNews {
 public:
  InterfaceNews();
  ~InterfaceNews();
  InterfaceNews(const InterfaceNews&) = delete;
  InterfaceNews& operator=(const InterfaceNews&) = delete;

  // True: there is news of an interface whose index `concerns`, or some was lost.
  bool look(const std::function<bool(int)>& concerns, Time now);
  // By rtnetlink.
  [[nodiscard]] bool is_reported() const { return fd_ >= 0; }

  // The interval without reports.
  static constexpr Time kInterval = 100 * kMillisecond;

 private:
  [[nodiscard]] bool told(const std::function<bool(int)>& concerns) const;

  const int fd_;  // -1: no rtnetlink
  Time ask_at_ = 0;
};

// Watches the state of one interface. The kernel reports changes by rtnetlink, so an unchanged
// interface costs one read of an empty socket. Without rtnetlink (a sandbox may forbid it) this
// asks the kernel at intervals. Whoever looks never waits for the kernel's answer.
class InterfaceWatch {
 public:
  struct Facts {
    int index = 0;  // 0: no such interface
    bool up = false, running = false;
    unsigned mtu = 0;
    unsigned megabits = 0;  // speed, Mbit/s; 0: not known
    MacAddr mac;
    std::optional<Ipv4> address;  // its first IPv4 address
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  explicit InterfaceWatch(std::string name);

  // Reads the kernel's reports, and has it asked aside if there are any, every kInterval at most.
  // True: facts() have changed.
  bool look(Time now);
  // Asks the kernel, even without a report, and waits for it.
  void ask();
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // kUp, kDown, kNoCarrier or kGone.
  [[nodiscard]] LinkState state() const;

  static constexpr Time kInterval = 10 * kMillisecond;

 private:
  [[nodiscard]] Facts found(const Facts& before) const;
  bool ask_driver(const std::string& name, void* command) const;
  [[nodiscard]] unsigned ask_speed(const std::string& name) const;
  [[nodiscard]] bool has_no_line(const std::string& name) const;

  const std::string name_;
  const InterfaceSocket socket_;
  InterfaceNews news_;
  bool is_old_ = false;       // there was news since it asked last
  bool is_outdated_ = false;  // the answer that is still to come
  Time ask_at_ = 0;
  Facts facts_;
  Facts before_;  // when it was asked aside
  // nullopt: there was no memory. What this needs outlives it.
  AskedAside<std::optional<Facts>> asking_{[this] { return std::optional(found(before_)); }};
};

// The addresses of this host and the names of its interfaces, for questions of anybody: none asks
// the kernel about a name, which takes the lock of all interfaces, or makes it look for a module of
// that name (as long as the kernel has never told the list, index_of() does). Asks for the lists
// only when something about interfaces has changed: on a host with thousands of addresses they take
// milliseconds. One thread at a time.
class HostAddresses {
 public:
  // Each with the number of its interface, in order; ports are 0.
  struct Lists {
    std::vector<std::pair<InternetAddress, unsigned>> addresses;
    std::vector<std::pair<std::string, unsigned>> names;
  };
  using List = std::optional<Lists>;  // nullopt: the kernel does not tell
  // How long it waits for a new list, and for the first one. Where that takes longer, the last one
  // counts until it is here.
  static constexpr Time kPatience = 20 * kMillisecond, kFirst = 200 * kMillisecond;

  explicit HostAddresses(std::function<List()> ask = read) : asking_(std::move(ask)) {}
  // Whether that interface has the address, whatever its port; 0: any interface.
  bool has(const InternetAddress& address, unsigned interface, Time now);
  // The interface of that name, which may be an alternative one, or with that number. 0: there is
  // none. nullopt: that is not known yet.
  std::optional<unsigned> index_of(const std::string& zone, Time now);

 private:
  static List read();
  void look(Time now);

  InterfaceNews news_;
  bool is_old_ = true;
  Time ask_at_ = 0;
  List all_;
  AskedAside<List> asking_;
};

// ---- Links whose interface or address is not there.

// Why a link cannot be opened yet: what it needs is not there, and may come.
struct Absence {
  LinkState state;      // kGone or kDown
  std::string trouble;  // with the remedy
};

// Of an interface. nullopt: it is there, and up.
inline std::optional<Absence> absence_of(const std::string& interface,
                                         const InterfaceWatch::Facts& facts) {
  if (facts.index == 0)
    return Absence{LinkState::kGone, "there is no interface " + interface +
                                         ": the link waits for it ('ip link' lists them)"};
  if (!facts.up)
    return Absence{LinkState::kDown, "the interface is down: ip link set " + interface + " up"};
  return std::nullopt;
}

inline std::optional<Absence> absence_of(const std::string& interface) {
  return absence_of(interface, InterfaceWatch(interface).facts());
}

// Of a link: the interface of iface: with driver=af_packet, which must be up; the address or
// interface of udp:; the folder for the socket of a memif: server. nullopt: all is there, or links
// of this kind do not wait.
std::optional<Absence> absence_of(const LinkConfig& link);

// Of an address that no socket of this host can be bound to: " is an address of eth0, ..." with the
// remedy, if that interface belongs to a VRF. "": no interface has it.
std::string hint_at_vrf(const InternetAddress& address);
// Of an IPv6 address that no interface has: which one cannot have any, as its MTU is too small, and
// the remedy. "": all can.
std::string hint_at_short_packets(const InternetAddress& address);

// Why the link's address is none that it can have on this host, now or later; "": it can. What the
// text of the link alone says is checked by parse_link().
std::string unfit_here(const LinkConfig& link);

// Watches whether this host still has what a udp: link is bound to: its address, or its interface.
// And which address a link has that is bound to none, and how fast its line is. Whoever looks never
// waits for the kernel's answer.
class AddressWatch {
 public:
  // A link at all addresses of the host lacks none.
  explicit AddressWatch(LinkConfig config);

  // Asks every kInterval, if something has changed at all, or the kernel does not tell that: then
  // one at all addresses, which lacks nothing, asks every kSeldom. True: absence(), index(), own()
  // or megabits() has changed.
  bool look(Time now);
  // kGone, kDown or kNoCarrier, with the remedy. nullopt: all is there.
  [[nodiscard]] const std::optional<Absence>& absence() const { return absence_; }
  // Of the interface that the link names; 0: it names none, or there is no such interface.
  [[nodiscard]] unsigned index() const { return index_; }
  // Of a link at all addresses, or those of an interface: the one that its packets to elsewhere had
  // first, and when that is gone, the one that they have then: a new route alone changes nothing.
  // Where there is none it stays, and what lacks a way to elsewhere gives way to one that has it.
  // nullopt: it is bound to one, or there is none.
  [[nodiscard]] const std::optional<InternetAddress>& own() const { return own_; }
  // Speed of the interface that has the address, or that the link names. Of a link at all
  // addresses, that of the only one that leads to other hosts, and is up. 0: not known.
  [[nodiscard]] unsigned megabits() const { return megabits_; }

  // How often it asks, and looks whether there is an answer.
  static constexpr Time kInterval = 50 * kMillisecond, kAnswer = kMillisecond;
  static constexpr Time kSeldom = kSecond;

 private:
  struct Found {
    std::optional<Absence> absence;
    unsigned index = 0;
    std::optional<InternetAddress> own;
    bool has_way = false;  // from that to other networks
    unsigned megabits = 0;
  };
  [[nodiscard]] Found ask() const;
  bool note(Found found);
  [[nodiscard]] bool is_at_all_addresses() const {
    return config_.target.empty() || (address_ && address_->is_unspecified());
  }
  void look_for_own(Found& found) const;
  // Whether the host had the address that it tells only until it has `found`'s.
  [[nodiscard]] bool is_makeshift(const Found& found) const;
  [[nodiscard]] bool is_there(const InternetAddress& own) const;
  // Its absence and its speed.
  void look_at_line(Found& found) const;

  const LinkConfig config_;
  std::optional<InternetAddress> address_;  // nullopt: the link names an interface
  std::string interface_;                   // that the link names; "": none
  InterfaceNews news_;
  bool is_old_ = false;  // there was news since it asked last
  Time look_at_ = 0, ask_at_ = 0;
  std::optional<Absence> absence_;
  unsigned index_ = 0;
  std::optional<InternetAddress> own_;
  bool has_way_ = false;
  unsigned megabits_ = 0;
  // nullopt: there was no memory. What this needs outlives it.
  AskedAside<std::optional<Found>> asking_{[this] { return ask(); }};
};

// Packet sockets kept for links whose interface is not there yet: a daemon opens them before it
// gives up the right to (CAP_NET_RAW). One that is not bound receives nothing. Thread-safe.

// Keeps one more. False: `error` says why it cannot be opened.
bool keep_packet_socket(std::string& error);
// Whether open_packet_socket() can succeed; errno if not.
bool may_open_packet_sockets();
// Returns a descriptor that is not bound, or -1 with errno.
int open_packet_socket();
// Closes one of open_packet_socket(). One that had been kept is kept again, without its rings,
// which must not be mapped.
void close_packet_socket(int fd);

}  // namespace stp::port
