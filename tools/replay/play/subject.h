// SPDX-License-Identifier: BSD-3-Clause
// Who is put in the place of a station of a trace: a Node, or a peer on a real link.
#pragma once

#include <functional>
#include <string>

#include "tools/replay/play/recording.h"
#include "tools/replay/play/renaming.h"

namespace stp::replay {

class Subject {
 public:
  // What it sends, as it sends it.
  using Output = std::function<void(const Recorded&)>;
  virtual ~Subject() = default;

  // Whether it may be told of Slots that no peer has.
  [[nodiscard]] virtual bool wants_credit() const = 0;

  // Lets the trace's clock run to `now`.
  virtual void advance(std::int64_t now) = 0;
  // A frame for it, in the subject's names. `at`: its place in the trace.
  virtual void deliver(std::size_t at, Bytes frame) = 0;
  // The trace shows the station sending frame `at`: its user decided so, if a user does. False: the
  // subject cannot be made to.
  virtual bool decide(std::size_t at) = 0;
};

}  // namespace stp::replay
