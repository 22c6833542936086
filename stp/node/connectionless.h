// SPDX-License-Identifier: BSD-3-Clause
// Connectionless endpoints: a Port and a Key without a peer (docs/protocol.md, section 11). A frame
// does not name its sender's Key, so the Node cannot answer for these endpoints: it only places
// data or passes headers to the user. Who guesses Keys has to wait.
#pragma once

#include "stp/node/inbound/placement.h"

namespace stp {

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

}  // namespace stp
