// SPDX-License-Identifier: BSD-3-Clause
// Blocks one after the other at level 0, a window of them outstanding on each connection; and the
// other side of that, which has only to be turned. A Block tells the peer's program nothing. Done
// are those that the peer's Node has confirmed: one in several asks for that.
#pragma once

#include <vector>

#include "tools/perf/level0.h"
#include "tools/perf/pace.h"

namespace stp::perf {

class Level0Stream {
 public:
  Level0Stream(const Plan& plan, std::vector<Level0Connection> connections);

  void start();
  void stop();
  // Sends what the windows have room for, and takes what has been confirmed. False: nothing was.
  bool turn();
  [[nodiscard]] bool drained() const;
  // Those that this side began and that are complete.
  [[nodiscard]] std::uint64_t operations() const { return done_; }

 private:
  // Blocks are numbered modulo 2^32.
  struct Lane {
    Level0Connection connection;
    std::uint32_t next = 0;       // to be sent
    std::uint32_t confirmed = 0;  // all before it are complete
    std::uint32_t end = 0;        // where it ends, once it is stopped
    std::uint32_t question = 0;   // of the last RS
    bool asked = false;           // that RS is not answered
    Clock::time_point ask_at, give_up_at;
  };
  void fill(Lane& lane);
  void send(Lane& lane);
  bool take(Lane& lane);
  void confirm(Lane& lane, const st_header_t& state);
  void ask(Lane& lane);
  void wait(Lane& lane);
  static void be_patient(Lane& lane);

  const Plan plan_;
  const std::uint32_t asks_;  // one Block in so many, a power of two
  std::vector<Lane> lanes_;
  bool running_ = false;
  std::uint64_t done_ = 0;
};

}  // namespace stp::perf
