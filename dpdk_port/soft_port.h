// SPDX-License-Identifier: BSD-3-Clause
// A Port without a device: the frames of its Node go to itself and to other shards of its link.
#pragma once

#include "dpdk_port/link_port.h"

namespace stp::port {

class SoftPort : public LinkPort {
 public:
  unsigned turn(Engine& engine, Time now) final;

 protected:
  SoftPort(PortInfo info, const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing), heads_(kBurst, frame_room(info_.mtu)) {}

  // A frame to another station. What is attached may be read until this returns.
  virtual void send_away(const TxFrame& frame) = 0;
  // Once a turn.
  virtual void look(Time /*now*/) {}

 private:
  unsigned send_burst(Engine& engine, Time now);
  bool send(const TxFrame& frame);

  FrameBuffers heads_;
};

}  // namespace stp::port
