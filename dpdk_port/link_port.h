// SPDX-License-Identifier: BSD-3-Clause
// The common part of all Ports. Free of DPDK types, like Port.
#pragma once

#include <optional>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/port.h"

namespace stp::port {

// On cache lines of its own, as are those of other shards.
class alignas(kCacheLine) LinkPort : public Port {
 public:
  unsigned poll(Node& node, Time now) final {
    NodeEngine engine(node);
    return turn(engine, now);
  }
  virtual unsigned turn(Engine& engine, Time now) = 0;

  [[nodiscard]] const PortInfo& info() const final { return info_; }
  void set_tap(Tap* tap) final { tap_ = tap; }
  void set_bell(int bell) final {
    if (seat_) seat_->crossing().set_bell(seat_->shard(), bell);
  }
  bool prepare_to_sleep() override { return !seat_ || seat_->prepare_to_sleep(); }
  void woke_up() override {
    if (seat_) seat_->woke_up();
  }

 protected:
  // `crossing`: connects it to the other shards; nullptr: there are none.
  explicit LinkPort(PortInfo info, const std::shared_ptr<Crossing>& crossing = nullptr)
      : info_(std::move(info)), loopback_(frame_room(info_.mtu)) {
    if (!crossing) return;
    seat_.emplace(crossing, info_.shard);
    info_.shards = {crossing, &crossing->shards()};
  }

  // Adds the counters of its Seat, if it has one.
  void add_seat_counters(std::vector<PortCounter>& to) const {
    if (seat_) add(to, seat_->counters());
  }

  PortInfo info_;
  Loopback loopback_;
  std::optional<Seat> seat_;  // none: the link has one shard
  Tap* tap_ = nullptr;
};

// log2 of the longest STU that an MTU carries with a Schedule Header and an append. The MTU is at
// least kMinMtu.
// protocol: 2.8
constexpr unsigned max_stu_of(unsigned mtu) {
  unsigned exponent = wire::kMinMaxStu;
  while (exponent < wire::kMaxMaxStu &&
         (2U << exponent) + wire::kHeaderSize + wire::kAppendSize <= mtu) {
    ++exponent;
  }
  return exponent;
}

// Each opens all shards of a link of one kind. Empty: `error` says why.
using LinkPorts = std::vector<std::unique_ptr<LinkPort>>;
LinkPorts open_loop_ports(const LinkConfig& config, unsigned shards);
LinkPorts open_udp_ports(const LinkConfig& config, unsigned shards, OpenError& error);
LinkPorts open_ethdev_ports(const LinkConfig& config, unsigned shards, std::string& error);

}  // namespace stp::port
