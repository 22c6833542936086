// SPDX-License-Identifier: BSD-3-Clause
// A TCP connection that always has something to send, as far as it matters to others on its path:
// CUBIC's window (RFC 9438), an answer to each segment, losses seen by the segments that arrive
// behind them, and a timeout.
#pragma once

#include <deque>

#include "tools/sim/bottleneck.h"

namespace stp::sim {

struct CubicConfig {
  std::size_t segment = 1'514;  // bytes on the path
  Time way_back = 0;            // delay of the answers
};

class Cubic {
 public:
  // Sends through `path`, which must outlive it, as does what is on the clock of `run`. `flow`: its
  // number there.
  Cubic(Run& run, Bottleneck& path, unsigned flow, const CubicConfig& config)
      : run_(run), path_(path), flow_(flow), config_(config) {}
  Cubic(const Cubic&) = delete;
  Cubic& operator=(const Cubic&) = delete;

  void start();

 private:
  struct Segment {
    std::uint64_t number;
    Time sent;
  };
  void send();
  void answered(std::uint64_t number);
  void grow(Time round_trip);
  void lost();
  void watch();

  Run& run_;
  Bottleneck& path_;
  const unsigned flow_;
  const CubicConfig config_;
  std::deque<Segment> on_the_way_;
  std::uint64_t next_ = 0;
  std::uint64_t recovered_from_ = 0;  // losses before this number have been answered
  Time heard_ = 0, round_trip_ = 0;
  // In segments.
  double window_ = 10, threshold_ = 1e18, most_ = 0, reno_ = 0;
  Time epoch_ = 0;     // when the window began to grow after the last loss
  double origin_ = 0;  // seconds from there until it is at `most_` again
};

}  // namespace stp::sim
