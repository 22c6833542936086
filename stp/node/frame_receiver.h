// SPDX-License-Identifier: BSD-3-Clause
// Receives frames: from bytes to the mechanism that handles the operation. A frame that is
// malformed, for somebody else, or illegal now changes nothing and is counted.
#pragma once

#include "stp/node/connection/listeners.h"
#include "stp/node/connectionless.h"
#include "stp/node/inbound/placement.h"
#include "stp/node/peer_gets.h"

namespace stp {

class FrameReceiver {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Placement& placement;
    Listeners& listeners;
    Openings& openings;
    VcEndings& endings;
    ConnectionlessPorts& ports;
    StateExchange& states;
    PeerGets& gets;
    Pacing& pacing;
    Tidying& tidying;
    WakeUps& wake_ups;
  };
  explicit FrameReceiver(const Uses& uses) : use_(uses) {}

  // As the functions of Node.
  void receive(std::span<const Bytes> burst, Time now);
  void receive_looped(std::span<const LoopedFrame> burst, Time now);
  void receive_apart(std::span<const LoopedFrame> burst, Time now);

 private:
  bool receive_expected(Bytes bytes, Bytes apart, Time now);
  void receive_frame(Bytes bytes, Bytes apart, Time now);
  void count(std::size_t frames, std::size_t bytes);
  void receive_on_vc(Vc& vc, const wire::Frame& frame, Time now);
  void deliver_control(Vc& vc, const wire::Frame& frame);
  void learn_from(Vc& vc, const wire::Header& h);
  void end_transfer(Vc& vc, const wire::End& end);

  Uses use_;
  // The frame being received. Reused, because each frame overwrites all fields that are read.
  wire::Frame parsed_;
};

}  // namespace stp
