// SPDX-License-Identifier: BSD-3-Clause
// Waits for the events of a queue, by polling or by sleeping.
#pragma once

#include <array>
#include <stp/managed.hpp>

namespace stp::perf {

class Events {
 public:
  // `crowded`: there are more pollers than cores. A poll without result then yields the core.
  Events(stm_queue_t queue, bool sleeps, bool crowded);

  // Passes waiting events to `handle`. If there are none and `sleeps` is set, it first sleeps, for
  // 100 ms at most.
  template <typename Handle>
  void turn(Handle&& handle) {
    for (int left = take(), i = 0; i < left; ++i) handle(batch_[static_cast<std::size_t>(i)]);
  }

 private:
  int take();

  stm_queue_t queue_;
  bool sleeps_, crowded_;
  std::array<stm_event_t, 64> batch_;
};

}  // namespace stp::perf
