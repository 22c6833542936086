// SPDX-License-Identifier: BSD-3-Clause
// A Port without a device: it passes its Node's frames to the Node itself and to other shards of
// its link.
#pragma once

#include "dpdk_port/link_port.h"

namespace stp::port {

class SoftPort : public LinkPort {
 public:
  unsigned turn(Engine& engine, Time now) final;

 protected:
  SoftPort(PortInfo info, const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing), heads_(kBurst, frame_room(info_.mtu)) {}

  // Sends a frame to another station. Reads the attached memory only until it returns.
  virtual void send_away(const TxFrame& frame) = 0;
  // Called once a turn.
  virtual void look(Time /*now*/) {}

 private:
  unsigned send_burst(Engine& engine, Time now);
  bool send(const TxFrame& frame);

  FrameBuffers heads_;
};

}  // namespace stp::port
