// SPDX-License-Identifier: BSD-3-Clause
// A ping-pong over the managed API: one operation there and one back, for both sides.
#pragma once

#include <atomic>
#include <functional>
#include <stp/managed.hpp>

#include "tools/perf/events.h"
#include "tools/perf/room.h"

namespace stp::perf {

class Ping {
 public:
  // `others`: handles the events that do not belong to the ping-pong.
  using Others = std::function<void(const stm_event_t&)>;
  Ping(const Plan& plan, const Room& room, const stm_remote_t& peer, stm_connection_t connection,
       Others others);

  static constexpr std::uint64_t kContext = 1;

  // For the client: begins an operation, and waits for the answer or the completion.
  void round_trip();
  // For the server: answers an operation, if one has come.
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
  std::uint64_t sequence_ = 0;  // number of the last put that was sent
  std::uint64_t seen_ = 0;      // number of the last put that has arrived
  unsigned completions_ = 0;
};

}  // namespace stp::perf
