// SPDX-License-Identifier: BSD-3-Clause
// Round robin of senders: owners take turns, and the connections of one owner take turns. More
// connections do not give an owner a larger share.
#pragma once

#include "stp/node/objects.h"

namespace stp {

class Turns {
 public:
  // No connection has anything to send.
  [[nodiscard]] bool empty() const { return owners_.empty(); }
  // `vc` has, or may have, something to send. Queues it behind the others of its owner unless it is
  // queued already.
  void enter(Vc& vc) {
    if (vc.in<IsReady>()) return;
    auto& owner = *vc.endpoint->owner;
    owner.ready.push_back(vc);
    if (!owner.linked()) owners_.push_back(owner);
  }
  // Takes the connection that sends next. Requires !empty().
  Vc& next() {
    auto& owner = owners_.front();
    auto& vc = owner.ready.pop_front();
    if (owner.ready.empty())
      owner.unlink();
    else if (owners_.after(owner) != nullptr)
      owners_.push_back(owners_.pop_front());
    return vc;
  }
  // Call when `vc` has ended.
  static void leave(Vc& vc) {
    vc.leave<IsReady>();
    auto& owner = *vc.endpoint->owner;
    if (owner.ready.empty()) owner.unlink();
  }

 private:
  LinkedList<Owner, HasReady> owners_;
};

}  // namespace stp
