// SPDX-License-Identifier: BSD-3-Clause
// What takes the place of a station of a trace: a Node, or a peer on a real link.
#pragma once

#include <functional>
#include <string>

#include "tools/replay/play/recording.h"
#include "tools/replay/play/renaming.h"

namespace stp::replay {

class Subject {
 public:
  // Called with each frame that it sends.
  using Output = std::function<void(const Recorded&)>;
  virtual ~Subject() = default;

  // Whether it may be given more Slots than the peer of the trace has.
  [[nodiscard]] virtual bool wants_credit() const = 0;

  // Advances the trace's clock to `now`.
  virtual void advance(std::int64_t now) = 0;
  // Delivers a frame, which has the subject's names. `at`: its place in the trace.
  virtual void deliver(std::size_t at, Bytes frame) = 0;
  // The trace shows that the station sends frame `at`. If that was a user's decision, makes the
  // same decision. Returns false if the subject cannot do it.
  virtual bool decide(std::size_t at) = 0;
};

}  // namespace stp::replay
