// SPDX-License-Identifier: BSD-3-Clause
// What every kind of Port has in common. Free of DPDK types, as Port is.
#pragma once

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/loopback.h"
#include "dpdk_port/port.h"

namespace stp::port {

class LinkPort : public Port {
 public:
  unsigned poll(Node& node, Time now) final {
    NodeEngine engine(node);
    return turn(engine, now);
  }
  virtual unsigned turn(Engine& engine, Time now) = 0;

  [[nodiscard]] const PortInfo& info() const final { return info_; }
  void set_tap(Tap* tap) final { tap_ = tap; }

 protected:
  explicit LinkPort(PortInfo info) : info_(std::move(info)), loopback_(frame_room(info_.mtu)) {}

  PortInfo info_;
  Loopback loopback_;
  Tap* tap_ = nullptr;
};

// The longest STU that an MTU carries beside a Schedule Header and an append, as an exponent.
// The MTU is at least kMinMtu.
// protocol: 2.8
constexpr unsigned max_stu_of(unsigned mtu) {
  unsigned exponent = wire::kMinMaxStu;
  while (exponent < wire::kMaxMaxStu &&
         (2U << exponent) + wire::kHeaderSize + wire::kAppendSize <= mtu) {
    ++exponent;
  }
  return exponent;
}

// Both open one kind of link. nullptr: `error` says why.
std::unique_ptr<LinkPort> open_loop_port(const LinkConfig& config, std::string& error);
std::unique_ptr<LinkPort> open_ethdev_port(const LinkConfig& config, std::string& error);

}  // namespace stp::port
