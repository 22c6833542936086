// SPDX-License-Identifier: BSD-3-Clause
// Threads of several shards that hand frames to each other, wait for room, and sleep.
#include "dpdk_port/link/crossing.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/dpdk_port/script_engine.h"

namespace stp::port {
namespace {

constexpr unsigned kShards = 3;
constexpr std::uint32_t kFrames = 20'000;  // from each to each other one: fills a ring many times
constexpr std::size_t kRoom = 9'000;
constexpr Time kNow = kSecond;  // does not advance, so no timeout expires

struct Word {
  std::uint32_t from, number;
};

class Worker {
 public:
  Worker(const std::shared_ptr<Crossing>& crossing, unsigned shard) : seat_(crossing, shard) {
    crossing->set_bell(shard, bell_);
  }
  ~Worker() { close(bell_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run() {
    while (sent_ < kFrames || received_ < kFrames * (kShards - 1)) {
      const bool sent = send_burst();
      const bool got = receive();
      if (!sent && !got && seat_.prepare_to_sleep()) sleep();
    }
  }
  unsigned overslept = 0, astray = 0;
  [[nodiscard]] const SeatCounters& counters() const { return seat_.counters(); }

 private:
  // Sends a frame to each other shard.
  bool send_burst() {
    if (sent_ == kFrames || !seat_.may_send(kNow)) return false;
    for (std::size_t i = 0; i < kBurst && sent_ < kFrames; ++i, ++sent_) {
      const Word word{seat_.shard(), sent_};
      for (unsigned to = 0; to < kShards; ++to) {
        if (to == seat_.shard()) continue;
        seat_.give(to, {reinterpret_cast<const std::byte*>(&word), sizeof word}, {}, i % 2 == 0);
      }
    }
    seat_.publish();
    return true;
  }
  bool receive() {
    const bool any = seat_.deliver(engine_, kNow) > 0;
    for (const Frame& frame : engine_.received) {
      Word word{};
      std::memcpy(&word, frame.data(), sizeof word);
      if (word.number != next_[word.from]++) ++astray;
      ++received_;
    }
    engine_.received.clear();
    return any;
  }
  void sleep() {
    pollfd bell{.fd = bell_, .events = POLLIN, .revents = 0};
    if (poll(&bell, 1, 20'000) == 0) ++overslept;
    eventfd_t value = 0;
    eventfd_read(bell_, &value);
    seat_.woke_up();
  }

  const int bell_ = eventfd(0, EFD_NONBLOCK);
  Seat seat_;
  ScriptEngine engine_;
  std::uint32_t sent_ = 0, received_ = 0;
  std::array<std::uint32_t, kShards> next_{};
};

TEST(Crossing, ThreadsLoseNothingAndNobodySleepsTooLong) {
  const auto crossing = std::make_shared<Crossing>(kShards, kRoom);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < kShards; ++i) workers.push_back(std::make_unique<Worker>(crossing, i));
  std::vector<std::thread> threads;
  for (const auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->counters().full, 0U);
    EXPECT_EQ(worker->counters().taken, std::uint64_t{kFrames} * (kShards - 1));
    EXPECT_EQ(worker->astray, 0U);
    EXPECT_EQ(worker->overslept, 0U);
  }
}

}  // namespace
}  // namespace stp::port
