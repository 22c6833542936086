// SPDX-License-Identifier: BSD-3-Clause
// stp-connections [--nodes N] [--connections C] [--active A] [--bursts B]: what a received frame
// costs where N Nodes have C connections together, and a Put of 8 bytes comes on A of them in turn.
// Frames come in bursts of 32, to one Node after the other. Prints the time of a frame, which
// depends on how many connections the caches hold; tools that count instructions count those of
// Crowd::receive(). Prints figures and does not judge them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "stp/wire/big_endian.h"
#include "tests/bench/command_line.h"
#include "tests/bench/many_connections.h"

namespace stp::bench {
namespace {

constexpr std::size_t kBurst = 32;

// The connections of one Node that get frames.
class Crowd {
 public:
  Crowd(std::size_t connections, std::size_t active) : many_(connections) {
    constexpr std::size_t kSpread = 40'507;  // a prime: neighbours in turn are far apart in memory
    for (std::size_t i = 0; i < active; ++i) {
      const auto which = i * kSpread % connections;
      many_.open_region(which);
      const auto frame = many_.put(which, 0);
      const auto* const header = frame.data() + wire::kEthernetSize;
      active_.push_back({wire::load16(header + wire::at::kDPort),
                         wire::load16(header + wire::at::kSPort),
                         wire::load32(header + wire::at::kDKey)});
      if (i == 0) frames_.fill(frame);
    }
  }

  // Writes the next burst into the buffers, as a link does.
  void prepare() {
    for (auto& frame : frames_) {
      const auto& to = active_[next_];
      auto* const header = frame.data() + wire::kEthernetSize;
      wire::store16(header + wire::at::kDPort, to.d_port);
      wire::store16(header + wire::at::kSPort, to.s_port);
      wire::store32(header + wire::at::kDKey, to.d_key);
      ManyConnections::set_b_num(frame, b_num_);
      if (++next_ < active_.size()) continue;
      next_ = 0;
      ++b_num_;
    }
  }
  __attribute__((noinline)) void receive() {
    std::array<Bytes, kBurst> burst;
    std::copy(frames_.begin(), frames_.end(), burst.begin());
    many_.node().receive(burst, many_.now());
  }
  [[nodiscard]] std::uint64_t received() { return many_.node().counters().get(Counter::kRxBlocks); }

 private:
  struct Active {
    std::uint16_t d_port, s_port;
    std::uint32_t d_key;
  };
  ManyConnections many_;
  std::vector<Active> active_;
  std::array<ManyConnections::Frame, kBurst> frames_;
  std::size_t next_ = 0;
  std::uint32_t b_num_ = 0;
};

struct Options {
  std::size_t nodes = 1, connections = 1'000, active = 1'000, bursts = 10'000;
};

// The time of the quickest of some rounds: a busy machine only adds to it.
double nanoseconds_each(std::vector<std::unique_ptr<Crowd>>& crowds, std::size_t bursts) {
  constexpr int kRounds = 8;
  using Clock = std::chrono::steady_clock;
  auto best = std::chrono::duration<double, std::nano>::max();
  for (int round = 0; round < kRounds; ++round) {
    std::chrono::duration<double, std::nano> took{};
    for (std::size_t i = 0; i < bursts; ++i) {
      auto& crowd = *crowds[i % crowds.size()];
      crowd.prepare();
      const auto begin = Clock::now();
      crowd.receive();
      took += Clock::now() - begin;
    }
    best = std::min(best, took);
  }
  return best.count() / static_cast<double>(bursts * kBurst);
}

int measure(const Options& options) {
  std::vector<std::unique_ptr<Crowd>> crowds;
  for (std::size_t i = 0; i < options.nodes; ++i)
    crowds.push_back(std::make_unique<Crowd>(options.connections / options.nodes,
                                             options.active / options.nodes));
  const auto each = nanoseconds_each(crowds, options.bursts);
  std::uint64_t received = 0;
  for (const auto& crowd : crowds) received += crowd->received();
  std::printf("nodes %zu, connections %zu, active %zu: %.0f ns a frame, %llu frames\n",
              options.nodes, options.connections, options.active, each,
              static_cast<unsigned long long>(received));
  return 0;
}

int run(int argc, char** argv) {
  constexpr const char* kUsage =
      "usage: stp-connections [--nodes N] [--connections C] [--active A] [--bursts B]\n";
  hold_to(kUsage, argc, argv);
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const auto name = std::string(argv[i]);
    const auto value = i + 1 < argc ? std::strtoul(argv[i + 1], nullptr, 10) : 0;
    auto* const option = name == "--nodes"         ? &options.nodes
                         : name == "--connections" ? &options.connections
                         : name == "--active"      ? &options.active
                         : name == "--bursts"      ? &options.bursts
                                                   : nullptr;
    if (option == nullptr || value == 0)
      refuse(argv[0], name + ": a number from 1 on is missing behind it", kUsage);
    *option = value;
  }
  constexpr std::size_t kMostOfANode = 65'000;  // its Ports
  if (options.connections / options.nodes > kMostOfANode || options.active > options.connections ||
      options.active < options.nodes) {
    std::fprintf(stderr,
                 "stp-connections: a Node has at most 65000 connections, and at least one "
                 "that is active\n");
    return 2;
  }
  return measure(options);
}

}  // namespace
}  // namespace stp::bench

int main(int argc, char** argv) try {
  return stp::bench::run(argc, argv);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "stp-connections: %s\n", failure.what());
  return 1;
}
