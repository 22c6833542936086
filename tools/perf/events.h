// SPDX-License-Identifier: BSD-3-Clause
// The events of a queue, polled for or slept for.
#pragma once

#include <array>
#include <stp/managed.hpp>

namespace stp::perf {

class Events {
 public:
  // `crowded`: there are more pollers than cores, so who polls in vain lets the next one run.
  Events(stm_queue_t queue, bool sleeps, bool crowded);

  // Hands those that are there to `handle`; without any it first sleeps a while, if it may.
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
