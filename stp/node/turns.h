// SPDX-License-Identifier: BSD-3-Clause
// Whose turn it is to send: owners take turns, and of one owner its connections, so that nobody has
// more by having more connections.
#pragma once

#include "stp/node/objects.h"

namespace stp {

class Turns {
 public:
  // Nobody has anything to send.
  [[nodiscard]] bool empty() const { return owners_.empty(); }
  // `vc` has something to send, or may have. It is behind the others of its owner, or where it was.
  void enter(Vc& vc) {
    if (vc.in<IsReady>()) return;
    auto& owner = *vc.endpoint->owner;
    owner.ready.push_back(vc);
    if (!owner.linked()) owners_.push_back(owner);
  }
  // Takes the connection whose turn it is. There is one.
  Vc& next() {
    auto& owner = owners_.front();
    auto& vc = owner.ready.pop_front();
    if (owner.ready.empty())
      owner.unlink();
    else if (owners_.after(owner) != nullptr)
      owners_.push_back(owners_.pop_front());
    return vc;
  }
  // `vc` is over.
  static void leave(Vc& vc) {
    vc.leave<IsReady>();
    auto& owner = *vc.endpoint->owner;
    if (owner.ready.empty()) owner.unlink();
  }

 private:
  LinkedList<Owner, HasReady> owners_;
};

}  // namespace stp
