// SPDX-License-Identifier: BSD-3-Clause
// One thing there and one back, over the managed API: both sides of it.
#pragma once

#include <atomic>
#include <functional>
#include <stp/managed.hpp>

#include "tools/perf/events.h"
#include "tools/perf/room.h"

namespace stp::perf {

class Ping {
 public:
  // `others`: takes the events that are none of ours.
  using Others = std::function<void(const stm_event_t&)>;
  Ping(const Plan& plan, const Room& room, const stm_remote_t& peer, stm_connection_t connection,
       Others others);

  static constexpr std::uint64_t kContext = 1;

  // The client: until the answer, or the completion, is there.
  void round_trip();
  // The server: answers what has come, if anything.
  void answer();

 private:
  void send();
  void land();
  void turn();
  [[nodiscard]] bool arrived();
  [[nodiscard]] std::atomic_ref<std::uint64_t> sequence_in(unsigned char* part) const;

  const Plan plan_;
  const Room& room_;
  const stm_remote_t peer_;
  stm_connection_t connection_;
  Others others_;
  Events events_;
  std::uint64_t sequence_ = 0;  // of the last one sent
  std::uint64_t seen_ = 0;      // of the last one that came
  unsigned completions_ = 0;
};

}  // namespace stp::perf
