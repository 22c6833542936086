// SPDX-License-Identifier: BSD-3-Clause
// Which stations the kernel reaches through a router or a tunnel of IP packets (WireGuard, IPIP,
// tun, PPP): the way there is shared with others. For any other station the kernel's route has no
// gateway: it is on the same subnet, or this host itself. A tunnel of Ethernet frames (VXLAN,
// GRETAP, tap) looks like a subnet. The kernel is asked (rtnetlink) for a station at a time, when
// the Node needs to know, and its answer counts for kHolds: so changes of routes and interfaces are
// found out.
//
// Of one shard; only its thread uses it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dpdk_port/link/address.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_socket.h"
#include "stp/base/keyed_hash.h"
#include "stp/node/node.h"
#include "stp/types.h"

struct nlmsghdr;

namespace stp::port {

class Routes final : public SharedWays {
 public:
  static constexpr Time kHolds = kSecond;
  // Questions for what users send without a connection in one turn, whatever they name.
  static constexpr unsigned kMostAsked = 8;

  // `peers` outlives this. `own`: the address of the link's socket, or none if it has all of the
  // host's; and its port, 0 if it has none. `socket`: that of the shard, which outlives this, too;
  // nullptr: none.
  Routes(const Peers& peers, const InternetAddress& own, Random& random,
         UdpSocket* socket = nullptr);
  ~Routes() override;
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  // From now on the kernel's answers are those for the network namespace that this thread has now.
  // False: it does not open, or not yet; is_shared() tries again.
  bool open();

  // The time of what follows, and the interface that the link is bound to; 0: none.
  void turn(Time now, unsigned interface) {
    now_ = now;
    interface_ = interface;
  }
  // What follows may ask the kernel kMostAsked times, or without end: frames that have come, each
  // of which costs its sender more.
  void users_send() { left_ = kMostAsked; }
  void frames_come() { left_ = kNoLimit; }

  // True also if the kernel does not tell: a sandbox may forbid rtnetlink, and there may be no way
  // at all. Who may not ask any more has the last answer, or true.
  [[nodiscard]] bool is_shared(const MacAddr& station) override;

  // The interface by which the kernel sends to that address. 0: it does not tell.
  [[nodiscard]] unsigned interface_to(const Peers::Route& way);

  void tell_marks() override {
    if (socket_ != nullptr) socket_->tell_marks();
  }

  [[nodiscard]] std::uint64_t asked() const { return asked_; }

 private:
  static constexpr unsigned kNoLimit = ~0U;

  struct Found {
    bool here = false;  // to this host itself
    bool gateway = false;
    unsigned interface = 0;
  };
  static Found read_route(const nlmsghdr& message);
  static std::optional<Found> answer(int fd, std::uint32_t serial);
  [[nodiscard]] bool ask(const Peers::Route& way);
  std::optional<Found> find(const Peers::Route& way);

  const Peers& peers_;
  const InternetAddress own_;
  UdpSocket* const socket_;
  KeyedHash hash_;  // nobody knows which stations have one place
  int fd_ = -1;
  std::uint32_t serial_ = 0;
  Time now_ = 0;
  unsigned interface_ = 0;
  std::uint64_t asked_ = 0;
  unsigned left_ = kNoLimit;
  struct Answer {
    std::uint64_t station = 0;
    Time asked = kNever;
    bool shared = true;
  };
  // Of two stations with one place, the one that was asked about last has it.
  static constexpr unsigned kBits = 8;
  std::array<Answer, std::size_t{1} << kBits> answers_{};
};

}  // namespace stp::port
