// SPDX-License-Identifier: BSD-3-Clause
// Threads of several shards that hand frames to each other, wait for room, and sleep.

#include "dpdk_port/link/crossing.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
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

namespace stp::port::frame_ring_test {
namespace {

constexpr std::size_t kPlaces = 8, kRoom = 100;

class Ring : public ::testing::Test {
 protected:
  void fill() {
    for (std::size_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(ring.push(make_bytes(10, 1), {}, false));
    ring.publish();
  }
  FrameRing ring{kPlaces, kRoom};
};

TEST_F(Ring, FramesComeOutAsTheyWentInAndInTheirOrder) {
  for (unsigned i = 0; i < 5 * kPlaces; ++i) {
    const Frame head = make_bytes(40, i), rest = make_bytes(i, 100 + i);
    ASSERT_TRUE(ring.push(head, rest, i % 3 == 0));
    ASSERT_TRUE(ring.publish());
    ASSERT_EQ(ring.waiting(), 1U);
    const FrameRing::Entry entry = ring.at(0);
    EXPECT_EQ(Frame(entry.frame.begin(), entry.frame.end()), join(head, rest));
    EXPECT_EQ(entry.local, i % 3 == 0);
    ring.release(1);
  }
}

TEST_F(Ring, NothingIsSeenBeforeItIsPublished) {
  ASSERT_TRUE(ring.push(make_bytes(10, 1), {}, false));
  EXPECT_EQ(ring.waiting(), 0U);
  EXPECT_TRUE(ring.publish());
  EXPECT_FALSE(ring.publish());
  EXPECT_EQ(ring.waiting(), 1U);
}

TEST_F(Ring, TakesNoMoreThanItHasPlacesFor) {
  fill();
  EXPECT_FALSE(ring.push(make_bytes(10, 1), {}, false));
  EXPECT_FALSE(ring.has_room(1));
  ring.release(1);
  EXPECT_TRUE(ring.push(make_bytes(10, 1), {}, false));
  EXPECT_FALSE(ring.push(make_bytes(10, 1), {}, false));
}

// Many are written another way than few, short ones by whole lines.
TEST(FullRing, FramesThatArePublishedTogetherComeOutAsTheyWentIn) {
  constexpr unsigned kMany = 256;
  FrameRing ring(kMany, kMany);
  for (unsigned round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < kMany; ++i) {
      const auto head = std::min(i, 54U);
      ASSERT_TRUE(ring.push(make_bytes(head, i), make_bytes(i - head, 100 + i), i % 3 == 0));
    }
    ASSERT_TRUE(ring.publish());
    ASSERT_EQ(ring.waiting(), kMany);
    for (unsigned i = 0; i < kMany; ++i) {
      const auto head = std::min(i, 54U);
      const FrameRing::Entry entry = ring.at(i);
      ASSERT_EQ(Frame(entry.frame.begin(), entry.frame.end()),
                join(make_bytes(head, i), make_bytes(i - head, 100 + i)))
          << i << " bytes";
      EXPECT_EQ(entry.local, i % 3 == 0);
    }
    ring.release(kMany);
  }
}

TEST(LongFrames, KeepTheirLength) {
  constexpr std::size_t kLongest = 65'640;
  FrameRing ring(4, kLongest);
  for (const std::size_t length :
       {std::size_t{32'766}, std::size_t{32'767}, std::size_t{32'768}, kLongest}) {
    for (const bool local : {false, true}) {
      const Frame frame = make_bytes(length, 7);
      ASSERT_TRUE(ring.push(frame, {}, local));
      ring.publish();
      const FrameRing::Entry entry = ring.at(0);
      EXPECT_EQ(entry.frame.size(), length);
      EXPECT_TRUE(std::equal(entry.frame.begin(), entry.frame.end(), frame.begin(), frame.end()));
      EXPECT_EQ(entry.local, local);
      ring.release(1);
    }
  }
}

// A NIC may receive more than the MTU. The next place in the ring belongs to another frame.
TEST_F(Ring, AFrameThatIsTooLongIsRefused) {
  EXPECT_FALSE(ring.push(make_bytes(kRoom + 1, 1), {}, false));
  EXPECT_FALSE(ring.push(make_bytes(kRoom, 1), make_bytes(1, 2), false));
  EXPECT_TRUE(ring.push(make_bytes(kRoom, 1), {}, false));
}

TEST_F(Ring, WhoWaitsForRoomIsToldWhenHalfOfItIsFree) {
  fill();
  EXPECT_FALSE(ring.release(1)) << "nobody waits";
  EXPECT_FALSE(ring.has_room(2));
  EXPECT_FALSE(ring.may_go_on());
  EXPECT_FALSE(ring.release(1));
  EXPECT_FALSE(ring.may_go_on());
  EXPECT_TRUE(ring.release(2));
  EXPECT_TRUE(ring.may_go_on());
  EXPECT_FALSE(ring.release(1)) << "it has been told";
  EXPECT_TRUE(ring.has_room(2));
  EXPECT_FALSE(ring.may_go_on()) << "it waits no more";
}

TEST_F(Ring, TwoThreadsLoseNothing) {
  constexpr std::uint32_t kFrames = 30'000;
  std::thread sender([this] {
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      while (!ring.push({reinterpret_cast<const std::byte*>(&i), sizeof i}, {}, false)) {
        std::this_thread::yield();
      }
      ring.publish();
    }
  });
  std::uint32_t next = 0, wrong = 0;
  while (next < kFrames) {
    const std::size_t count = ring.waiting();
    if (count == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < count; ++i, ++next) {
      std::uint32_t number = 0;
      std::memcpy(&number, ring.at(i).frame.data(), sizeof number);
      wrong += number == next ? 0 : 1;
    }
    ring.release(count);
  }
  sender.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace stp::port::frame_ring_test

namespace stp::port {
namespace {

// Both ends follow the rule, and nothing else.
TEST(QueueShare, WithAQueueForEachPairAFrameArrivesAtTheShardOfItsPort) {
  for (unsigned senders = 1; senders <= Shards::kMost; ++senders) {
    for (unsigned receivers = 1; receivers <= Shards::kMost; ++receivers) {
      for (unsigned i = 0; i < senders; ++i) {
        const QueuesToSend to = queues_to_send(senders * receivers, {senders, i});
        for (const std::uint16_t port : std::to_array<std::uint16_t>({0, 1, 7, 1000, 65'535}))
          ASSERT_EQ(to.at(port) % receivers, port % receivers) << senders << " to " << receivers;
      }
    }
  }
}

TEST(QueueShare, NoQueueHasTwoSenders) {
  for (unsigned queues = 1; queues <= 40; ++queues) {
    for (unsigned shards = 1; shards <= Shards::kMost; ++shards) {
      std::set<unsigned> used;
      for (unsigned i = 0; i < shards; ++i) {
        const QueuesToSend to = queues_to_send(queues, {shards, i});
        for (unsigned n = 0; n < to.count; ++n) {
          EXPECT_TRUE(used.insert(to.first + n).second);
          EXPECT_LT(to.first + n, queues);
        }
      }
      EXPECT_GE(used.size(), std::min(queues, shards));
    }
  }
}

TEST(Gate, IsClosedAtFirst) {
  Gate gate;
  EXPECT_FALSE(gate.enter(3));
  gate.close();  // nobody is inside
  gate.open();
  EXPECT_TRUE(gate.enter(3));
  gate.leave(3);
  gate.close();
  EXPECT_FALSE(gate.enter(3));
}

// The owner takes away what the users look at. ThreadSanitizer and AddressSanitizer see a user that
// is late.
TEST(Gate, NobodyIsInsideWhenItHasClosed) {
  Gate gate;
  std::unique_ptr<unsigned> shared;
  std::atomic<bool> stop{false};
  std::array<std::atomic<unsigned>, 3> visits{};
  std::vector<std::thread> users;
  for (unsigned user = 0; user < visits.size(); ++user) {
    users.emplace_back([&, user] {
      while (!stop) {
        if (gate.enter(user)) {
          visits[user] += *shared;
          gate.leave(user);
        }
        std::this_thread::yield();
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    shared = std::make_unique<unsigned>(1);
    std::array<unsigned, 3> before{};
    for (unsigned user = 0; user < visits.size(); ++user) before[user] = visits[user];
    gate.open();
    for (unsigned user = 0; user < visits.size(); ++user)
      while (visits[user] == before[user]) std::this_thread::yield();
    gate.close();
    shared.reset();
  }
  stop = true;
  for (auto& user : users) user.join();
}

}  // namespace
}  // namespace stp::port
