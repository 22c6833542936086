// SPDX-License-Identifier: BSD-3-Clause
// One direction of a path through a network that others use, too: a router with a rate, a queue and
// a delay. Everything that passes has the number of its flow, by which its share is counted.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "tools/sim/run.h"

namespace stp::sim {

struct BottleneckConfig {
  std::uint64_t bits_per_second = 100'000'000;
  Time delay = 10 * kMillisecond;  // of the path, one way, without the queue
  std::size_t queue = 1 << 20;     // bytes; what finds no room is dropped
  // Drops early, by the time that packets have waited (RFC 8289).
  bool codel = false;
};

class Bottleneck {
 public:
  Bottleneck(Run& run, const BottleneckConfig& config) : run_(run), config_(config) {}
  Bottleneck(const Bottleneck&) = delete;
  Bottleneck& operator=(const Bottleneck&) = delete;

  // `arrive` is called when the packet is at the end of the path; never if it is dropped.
  void send(unsigned flow, std::size_t size, std::function<void()> arrive);

  // Forgets what was counted until now.
  void begin_counting();
  // What has happened since. use: part of the rate that was used, 0..1. delay: mean time in the
  // queue.
  [[nodiscard]] double use() const;
  [[nodiscard]] Time queueing_delay() const { return packets_ == 0 ? 0 : waited_ / packets_; }
  [[nodiscard]] std::uint64_t drops() const { return drops_; }
  // Bytes that have passed.
  [[nodiscard]] std::uint64_t bytes_of(unsigned flow) const;
  [[nodiscard]] const BottleneckConfig& config() const { return config_; }

 private:
  struct Packet {
    unsigned flow;
    std::size_t size;
    Time entered;
    std::function<void()> arrive;
  };
  // State of CoDel.
  struct Codel {
    Time above_since = kNever;  // packets have waited for too long since then
    bool dropping = false;
    Time next = 0;       // drop
    unsigned count = 0;  // drops since `dropping`
  };
  void serve();
  bool codel_drops(const Packet& packet);
  Packet take();

  Run& run_;
  const BottleneckConfig config_;
  std::deque<Packet> queue_;
  std::size_t bytes_ = 0;  // in the queue
  bool busy_ = false;
  Codel codel_;
  Time since_ = 0, waited_ = 0;
  std::uint64_t packets_ = 0, drops_ = 0;
  std::map<unsigned, std::uint64_t> passed_;  // bytes by flow
};

// Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
double fairness(const std::vector<std::uint64_t>& shares);

}  // namespace stp::sim
