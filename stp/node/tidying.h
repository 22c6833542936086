// SPDX-License-Identifier: BSD-3-Clause
// Frees what ended connections, regions and Transfers have left, in slices: a little at once, the
// rest in later turns. So no call is long because something large has ended.
#pragma once

#include <deque>

#include "stp/node/memory/mapped_memory.h"
#include "stp/node/pacing.h"

namespace stp {

class Tidying {
 public:
  // `memory` and `pacing` have remains of their own. They must outlive this.
  Tidying(MappedMemory& memory, Pacing& pacing) : memory_(memory), pacing_(pacing) {}

  // All Transfers of a connection have ended and left `ended`.
  void later(InboundRemains ended);
  // Some Transfers of `vc` may have ended.
  void later(Vc& vc) {
    if (vc.inbound.untidy() && !vc.in<IsUntidy>()) vcs_.push_back(vc);
  }
  // Frees one slice.
  void turn();
  [[nodiscard]] bool untidy() const {
    return memory_.untidy() || pacing_.untidy() || !remains_.empty() || !vcs_.empty();
  }

 private:
  static constexpr std::size_t kAtOnce = 64, kInATurn = 1'024;

  MappedMemory& memory_;
  Pacing& pacing_;
  std::deque<InboundRemains> remains_;
  LinkedList<Vc, IsUntidy> vcs_;
};

}  // namespace stp
