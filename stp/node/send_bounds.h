// SPDX-License-Identifier: BSD-3-Clause
// Holds users' frames back while too much of what was sent along a path is not proven to have
// arrived (docs/protocol.md, section 13). Without congestion control nothing is held back.
#pragma once

#include "stp/node/common.h"
#include "stp/node/objects.h"
#include "stp/node/pacing.h"

namespace stp {

class SendBounds {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Pacing& pacing;
    Turns& turns;
  };
  explicit SendBounds(const Uses& uses) : use_(uses) {}

  // How many frames `vc`, whose path is `path`, may send. 0: it is queued again when it may.
  // protocol: 13.16
  std::size_t room(Vc& vc, Path& path, Time now);
  // It has sent `bytes`.
  void sent(Vc& vc, Path& path, std::uint64_t bytes, Time now);
  // An answer (RSR) without the name of a Transfer has arrived. True: it is to a question of this.
  bool answered(Vc& vc, std::uint32_t sync, Time now);
  // Asks again what is not answered. Call when deadline() has passed.
  void expire(Time now);
  [[nodiscard]] Time deadline() const { return use_.pacing.paths().timers().next(); }

 private:
  void ask(Vc& vc, SentWindow& window, Time now);
  void wake(SentWindow& window, Time now);
  void expire(SentWindow& window, Time now);
  Vc* asker(SentWindow& window);

  Uses use_;
};

}  // namespace stp
