// SPDX-License-Identifier: BSD-3-Clause
// Sends Blocks at level 0, with a window of them outstanding on each connection. The receiving side
// uses the same class and only calls turn(). The Blocks are Silent: the peer's program is not told
// of them. A Block counts as done when the peer's Node has confirmed it; one Block in several asks
// for confirmation.
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
  // Sends Blocks while the windows have room, and takes confirmations. Returns false if none came.
  bool turn();
  // After stop(): returns whether all Blocks are confirmed.
  [[nodiscard]] bool drained() const;
  // Returns how many Blocks of this side are confirmed.
  [[nodiscard]] std::uint64_t operations() const { return done_; }

 private:
  // Blocks are numbered modulo 2^32.
  struct Lane {
    Level0Connection connection;
    std::uint32_t next = 0;       // the next Block to send
    std::uint32_t confirmed = 0;  // all Blocks before it are confirmed
    std::uint32_t end = 0;        // after stop(): the end of the Blocks to send
    std::uint32_t question = 0;   // number of the last RS
    bool asked = false;           // the last RS is not answered yet
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
  const std::uint32_t asks_;  // one Block in so many asks for confirmation; a power of two
  std::vector<Lane> lanes_;
  bool running_ = false;
  std::uint64_t done_ = 0;
};

}  // namespace stp::perf
