// SPDX-License-Identifier: BSD-3-Clause
// Operations one after the other, a window of them outstanding on each connection; and the other
// side of that. Both ends have one: where the test goes both ways both of them run.
#pragma once

#include <stp/managed.hpp>
#include <vector>

#include "tools/perf/room.h"

namespace stp::perf {

class Stream {
 public:
  // The connections' contexts are those of context_of(); they outlive the Stream.
  Stream(const Plan& plan, const Room& room, const stm_remote_t& peer,
         std::vector<stm_connection_t> connections);

  // Of the connection, and of what is posted on it.
  enum class Role : std::uint64_t { kConnection, kBegun, kLanding };
  static std::uint64_t context_of(std::size_t index, Role role) {
    return static_cast<std::uint64_t>(index) << 2 | static_cast<std::uint64_t>(role);
  }

  void start();
  void stop() { running_ = false; }
  [[nodiscard]] bool drained() const { return outstanding_ == 0; }
  void handle(const stm_event_t& event);
  // What found no place when it was to be posted.
  void retry();
  // Those that this side began and that are complete.
  [[nodiscard]] std::uint64_t operations() const { return done_; }

 private:
  struct ReadRequest {
    stm_connection_t connection;
    std::uint32_t number;
  };
  void begin(std::size_t index);
  int post(std::size_t index);
  void land(std::size_t index);
  void serve(const ReadRequest& request);

  const Plan plan_;
  const Room& room_;
  const stm_remote_t peer_;
  std::vector<stm_connection_t> connections_;
  std::vector<std::size_t> owed_;
  std::vector<ReadRequest> unserved_;
  bool running_ = false;
  std::uint64_t outstanding_ = 0, done_ = 0;
};

}  // namespace stp::perf
