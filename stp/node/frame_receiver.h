// SPDX-License-Identifier: BSD-3-Clause
// Receives frames: from bytes to the mechanism that handles the operation. A frame that is
// malformed, for somebody else, or illegal now changes nothing and is counted.
#pragma once

#include "stp/node/connection/listeners.h"
#include "stp/node/inbound/placement.h"
#include "stp/node/peer_gets.h"

namespace stp {

// Connectionless endpoints: a Port and a Key without a peer (docs/protocol.md, section 11). A frame
// does not name its sender's Key, so the Node cannot answer for these endpoints: it only places
// data or passes headers to the user. Who guesses Keys has to wait.
class ConnectionlessPorts {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    Placement& placement;
    WakeUps& wake_ups;
  };
  explicit ConnectionlessPorts(const Uses& uses) : use_(uses) {}

  // The frame names the Port of an endpoint or a connection, but a wrong Key.
  // protocol: 5.18, 11.12
  void on_wrong_key(const Vc& vc, const wire::Frame& frame, Time now);
  // The frame has the right Port and Key.
  // protocol: 11.4, 11.9
  void receive(Vc& vc, const wire::Frame& frame, Time now);

 private:
  Uses use_;
};

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
  void fetch_ahead(std::span<const LoopedFrame> burst) const;
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
