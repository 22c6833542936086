// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <string>

#include "tools/sim/host.h"

namespace stp::sim {

struct CubicConfig {
  std::size_t segment = 1'514;  // bytes on the path
  Time way_back = 0;            // delay of the answers
};

// A TCP connection that always has something to send, as far as it matters to others on its path:
// CUBIC's window (RFC 9438), an answer to each segment, losses seen by the segments that arrive
// behind them, and a timeout.
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

// Long writes through a bottleneck that flows of TCP use, too. Each write has hosts of its own, or
// all go to one host.
struct SharedPath {
  BottleneckConfig bottleneck;
  unsigned writes = 1, cubic = 0;
  bool to_one = false;
  unsigned max_stu = 10;  // exponents
  unsigned max_block = 14;
  std::uint32_t cts_window = 64;                      // Blocks that are granted at once
  std::uint32_t slots = 512;                          // of each connection
  bool routed = false;                                // as in NodeConfig
  std::uint64_t granted_limit = 0, granted_most = 0;  // the same, of receivers
  bool greedy = false;                // receivers that grant without regard to the path
  Time every = 0;                     // between the beginnings of the flows, of either kind
  Time warm_up = 0, lasts = kSecond;  // what happens in `lasts` after `warm_up` is counted
  std::uint64_t length = 0;           // of each write; 0: more than fits this time
  unsigned at_once = 1;               // more: each write is many of `length`, so many at a time
  Time reaction = 0;                  // the longest time until a woken program runs
  HostConfig::Pauses of_senders{}, of_receivers{};  // hosts that are busy
};

struct SharedResult {
  std::string failure;     // the first that was noticed; empty: none
  double use = 0;          // part of the rate that was used
  double fair = 0;         // Jain's index of the writes
  double cubic_share = 0;  // of a flow of TCP on average, in fair shares
  Time delay = 0;          // mean time in the queue
  std::uint64_t drops = 0, dropped_bytes = 0, marks = 0;  // what the bottleneck did to packets
  unsigned finished = 0;                                  // writes
};

SharedResult play_shared(const SharedPath& path);

}  // namespace stp::sim
