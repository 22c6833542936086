// SPDX-License-Identifier: BSD-3-Clause
// A UDP socket of a link, or a raw one of IP protocol 118 (protocol: 13.15): opened, with what the
// kernel offers for it, and what it has told of datagrams that did not arrive. A link of several
// shards has one for each, all at one port.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/udp/kept_length.h"
#include "dpdk_port/udp/udp_troubles.h"
#include "stp/node/node.h"
#include "stp/types.h"

namespace stp::port {

// The longest datagrams, and headers before them, of IP and UDP.
inline constexpr std::size_t kLongestDatagram = 65'487;
inline constexpr unsigned kIpv4Header = 20, kIpv6Header = 40, kUdpHeader = 8;

// How many raw sockets of IP protocol 118 on this host, or in this network namespace, get datagrams
// for the address, which may be that of all; 0 if the kernel does not tell (/proc). The kernel
// gives each of them a copy of every datagram, so two links at one address would answer for each
// other. protocol: 13.15
unsigned raw_sockets_at(const InternetAddress& address);
// The same, from what the kernel tells in /proc/net/raw, or raw6.
unsigned raw_sockets_at(const InternetAddress& address, std::istream& list);

class UdpSocket {
 public:
  // How long the kernel keeps reports to itself after a flood of them.
  static constexpr Time kMuted = kSecond;

  // `count` sockets at one address and port: the kernel gives a datagram to the one whose place
  // among them is its D_Port modulo `count`, if is_steered(). `troubles` outlives them. `again`: in
  // place of those that the link has. Empty: see `error`.
  static std::vector<std::unique_ptr<UdpSocket>> open(const LinkConfig& config, unsigned count,
                                                      bool again, UdpTroubles& troubles,
                                                      OpenError& error);
  // Another one at the same port, connected to `peer`, so that it gets all that comes from there.
  // It is at `own`, or if that is none, at the usual address, joins no datagrams, and counts where
  // this one does, which outlives it. It gets only what comes by the interface of this number, or
  // the one that this socket is bound to: for a connected socket the kernel does not check sources
  // against its routes (rp_filter). nullptr: the kernel refuses, or would mean another network
  // namespace; `for_good`: and always will.
  std::unique_ptr<UdpSocket> toward(const InternetAddress& peer, const OwnAddress& own,
                                    unsigned interface, bool& for_good);
  // Of such a socket: what comes from the peer from now on is again for the other one. False: the
  // kernel refuses.
  bool hear_nobody() const;
  // Others at the same address and port, which hear nothing, of each that open() has opened. The
  // kernel keeps what is for an address on this subnet for seconds while it looks for the station,
  // and counts it in the send buffer of the socket: what is for stations that may not be there goes
  // by these, so it takes no room from others. This one: the station is there, or the kernel
  // refuses.
  [[nodiscard]] UdpSocket& by(Presence presence) {
    if (presence == Presence::kProven) return *this;
    UdpSocket* const deaf = deaf_[presence == Presence::kNamed ? kNamed : kClaimed].get();
    return deaf == nullptr ? *this : *deaf;
  }
  // Another one of these, for a datagram of which the kernel is to tell when it leaves for an
  // interface: `control` makes it do so, as below. nullptr: the kernel refuses it.
  [[nodiscard]] UdpSocket* asking() const { return deaf_[kAsking].get(); }
  static constexpr std::size_t kAskControl = 32;
  static std::size_t ask_departure(std::span<std::byte> control);
  // Whether this kernel tells so: a datagram to this host itself always leaves.
  static bool kernel_tells(Time now);
  // Whether one has left since the last call.
  bool has_left(Time now);
  // The send buffer, and how much of it is in use.
  [[nodiscard]] std::size_t send_bytes() const { return send_bytes_; }
  [[nodiscard]] std::size_t unsent() const;
  ~UdpSocket();
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int family() const { return family_; }
  // Ours. Bound to all addresses of the host: the one that its packets to elsewhere have, or none.
  [[nodiscard]] const InternetAddress& address() const { return address_; }
  [[nodiscard]] InternetAddress address(const OwnAddress& own) const {
    InternetAddress at = address_;
    if (own == OwnAddress{}) return at;
    at.ip = own.ip;
    at.scope = own.scope;
    return at;
  }
  [[nodiscard]] bool is_any() const { return any_; }      // bound to all addresses
  [[nodiscard]] bool has_ports() const { return !raw_; }  // it is one of UDP
  // Bytes of the headers before a datagram that may go to any address of the socket's.
  [[nodiscard]] unsigned headers() const {
    return (family_ == AF_INET ? kIpv4Header : kIpv6Header) + (raw_ ? 0 : kUdpHeader);
  }
  [[nodiscard]] unsigned longest() const { return longest_; }  // bytes of a datagram
  [[nodiscard]] bool segments() const { return segments_; }    // UDP_SEGMENT
  [[nodiscard]] bool joins() const { return joins_; }          // UDP_GRO
  [[nodiscard]] std::size_t receive_bytes() const { return receive_bytes_; }
  // How much of that messages may take that have been read and are kept (KeptMessages). The rest is
  // for those that have not been, and for what the kernel still counts of those that are gone,
  // which is up to a quarter of it.
  static constexpr std::size_t kForOthers = 12 << 20;
  [[nodiscard]] std::size_t kept_bytes() const {
    if (!joins_ || receive_bytes_ < KeptLength::kShort + kForOthers) return 0;
    return std::min({KeptLength::kLong, receive_bytes_ - kForOthers, receive_bytes_ / 2});
  }
  // Calls that leave messages in the queue read each of them once, and from now on all again. Where
  // the kernel does otherwise, they all read the first one.
  void read_from_begin() const;
  [[nodiscard]] bool reads_each_once() const;
  // Whether a NIC has received the first message that ever came to this socket, or the last one if
  // it is connected; or the kernel does not tell. Neighbours on a veth pair count as none.
  [[nodiscard]] bool is_of_nic() const;
  // Changes before another socket gets its descriptor, and again afterwards.
  [[nodiscard]] unsigned times_replaced() const {
    return replaced_.load(std::memory_order_acquire);
  }

  // A socket at all addresses: which of them a message came to, which one the kernel would send
  // from to `to`, and what makes it send from `own`: `control` is for a call, of which as many
  // bytes are used as it returns, without padding behind them. Of a socket at one address there is
  // nothing to say.
  static constexpr std::size_t kOwnControl = 64;
  [[nodiscard]] OwnAddress came_to(const msghdr& message) const;
  [[nodiscard]] OwnAddress used_for(const InternetAddress& to) const;
  std::size_t send_from(const OwnAddress& own, const InternetAddress& to,
                        std::span<std::byte> control) const;
  // The same for what lets routers mark a datagram to `to` (ECT(0)), and whether one has marked a
  // message (CE). Messages tell that from tell_marks() on.
  // protocol: 13.22
  static constexpr std::size_t kMarkControl = 48;
  static std::size_t let_mark(const InternetAddress& to, std::span<std::byte> control);
  static bool is_marked(const msghdr& message);
  void tell_marks();
  [[nodiscard]] bool tells_marks() const { return tells_marks_.load(std::memory_order_relaxed); }

  // Why the kernel does not pick the socket, which the first one of several knows; "": it does.
  [[nodiscard]] const std::string& not_steered() const { return not_steered_; }

  // The descriptor of `other` is this socket from now on. Any thread may use it meanwhile. Returns
  // the fault; "": none.
  std::string take_place_of(UdpSocket& other);

  // The device or the kernel cannot do it after all: this is the error.
  void stop_segmenting(int error, Time now);
  [[nodiscard]] int not_segmented() const { return not_segmented_; }  // 0: nothing has failed

  // Of one call that is made again and again.
  struct Attempts {
    int made = 0;
    int silent = 0;  // the last ones, after which no report was found
  };
  // A call on the socket has failed with `error`. True: make it again, because the error may be
  // that of an earlier datagram, of which the kernel tells once, in place of what any later call
  // would have done. This reads such reports, and after some attempts it mutes them. False: the
  // error is that of the call itself.
  // protocol: 13.8
  bool is_of_earlier(int error, Attempts& attempts, Time now);
  // Whether `error` is one that reports have: then it may still be that of an earlier datagram.
  static bool may_be_reported(int error);
  // Reports are heard again when their time has come. Once per turn.
  void hear_again(Time now) {
    if (muted_until_ != kNever && now >= muted_until_) mute(false, kNever);
  }
  // A datagram has left, or has come: faults of that peer may have healed.
  void count_sent(const InternetAddress& to, std::size_t bytes, Time now) {
    troubles_.sent(to, bytes, now);
  }
  void count_heard(const InternetAddress& from, Time now, bool answers) {
    troubles_.heard(from, now, answers);
  }
  void count_too_long(std::size_t bytes, Time now);
  [[nodiscard]] std::string confined_to_host(const InternetAddress& to, int error) const;
  void count_refused(std::size_t datagrams, const InternetAddress& to, int error, Time now);
  void tell_lost(const InternetAddress& to, int error, Time now);
  void count_failed(int error, Time now);

  [[nodiscard]] const UdpErrors& errors() const { return *errors_; }

 private:
  UdpSocket(int fd, int family, bool raw, UdpTroubles& troubles)
      : fd_(fd), family_(family), raw_(raw), troubles_(troubles) {}
  // `first`: nullptr, or the one whose port it shares.
  static std::unique_ptr<UdpSocket> open(const LinkConfig& config, const UdpSocket* first,
                                         UdpTroubles& troubles, OpenError& error);
  // Its address is another program's, too. "": it is not.
  [[nodiscard]] std::string other_raw_sockets() const;
  // The interface that it is bound to; "": none. nullopt: that has gone.
  [[nodiscard]] std::optional<std::string> device() const;
  int share(const UdpSocket& other, const std::string& interface, const InternetAddress& at);
  [[nodiscard]] std::unique_ptr<UdpSocket> open_deaf() const;
  void let_others_in(bool on) const;
  [[nodiscard]] bool lets_others_in() const;
  void steer(unsigned count);
  void set_options();
  OpenError bind(const std::string& interface, const InternetAddress& to);
  std::string find_longest(const LinkConfig& config, const std::string& interface);
  [[nodiscard]] std::string longer_than_interface(const LinkConfig& config) const;
  void read_reports(Time now);
  void note_report(const msghdr& message, Time now);
  void note_length(const InternetAddress& to, unsigned mtu, Time now);
  void mute(bool on, Time until);

  const int fd_;
  const int family_;
  const bool raw_;
  UdpTroubles& troubles_;
  InternetAddress address_;
  bool any_ = false;
  unsigned longest_ = 0;
  unsigned carries_ = 0;  // MTU of the interface that refused a datagram last; 0: not known
  bool segments_ = false, joins_ = false;
  std::atomic<bool> tells_marks_{false};
  std::atomic<unsigned> replaced_{0};
  int not_segmented_ = 0;
  std::size_t receive_bytes_ = 0, send_bytes_ = 0;
  bool left_ = false;          // the kernel has told so
  Time muted_until_ = kNever;  // kNever: reports are heard
  UdpErrors own_errors_;
  UdpErrors* errors_ = &own_errors_;
  std::string not_steered_;
  enum Deaf : std::size_t { kNamed, kClaimed, kAsking, kDeaf };
  std::array<std::unique_ptr<UdpSocket>, kDeaf> deaf_;
};

}  // namespace stp::port
