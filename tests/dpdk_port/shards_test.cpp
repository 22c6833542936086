// SPDX-License-Identifier: BSD-3-Clause
// The shards of one link: each frame reaches the shard of its Port. The link is a loop, so that
// frames go from shard to shard only. Over devices: shards_memif_test.cpp, shards_devices_test.cpp.
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/dpdk_port/shards_fixture.h"

namespace stp::port::shards_test {
namespace {

TEST(Shards, ThereAreAsManyAsTheLinkSays) {
  ShardedEnd end;
  end.open("loop,queues=3");
  ASSERT_EQ(end.ports.size(), 3U);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(end.ports[i]->info().shard, i);
    EXPECT_EQ(end.ports[i]->info().shards, end.ports[0]->info().shards);
    EXPECT_EQ(end.ports[i]->info().mac, end.mac());
  }
  end.open("loop");
  ASSERT_EQ(end.ports.size(), 1U);
  EXPECT_EQ(end.ports[0]->info().shards, nullptr);
  end.open("loop,queues=auto");
  EXPECT_GE(end.ports.size(), 1U);
  EXPECT_LE(end.ports.size(), kMaxQueues);
}

TEST(Shards, FramesOfALoopLinkGoWhereTheirPortIs) {
  ShardedEnd end;
  end.open("loop,queues=3");
  std::vector<std::vector<Frame>> expected(3);
  for (std::uint16_t port = 1; port <= 600; ++port) {
    const Frame frame = frame_for(port, end.mac(), end.mac(), port);
    end.engines[1].send(frame);
    expected[port % 3].push_back(frame);
  }
  until_idle(end);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(end.engines[i].received, expected[i]) << i;
  EXPECT_EQ(counter(*end.ports[1], "shard_given"), 400U);
  EXPECT_EQ(counter(*end.ports[0], "shard_taken"), 200U);
  EXPECT_EQ(counter(*end.ports[1], "looped"), 200U);
  EXPECT_EQ(end.total("shard_full"), 0U);
}

TEST(Shards, AttachedMemoryCrossesAndItsTokenComesBackAtOnce) {
  ShardedEnd end;
  end.open("loop,queues=2");
  const Frame memory = make_bytes(8192, 3);
  Frame head = frame_for(1, end.mac(), end.mac(), 0, 0);
  end.engines[0].send_attached(head, memory, 77);
  end.turn(0);
  EXPECT_EQ(end.engines[0].returned, (std::map<RegionId, unsigned>{{77, 1}}));
  end.turn(1);
  ASSERT_EQ(end.engines[1].received.size(), 1U);
  EXPECT_EQ(end.engines[1].received[0], join(head, memory));
}

TEST(Shards, ARequestGoesToTheShardThatListens) {
  ShardedEnd end;
  end.open("loop,queues=3");
  ASSERT_TRUE(end.shards().listen(3000, 2));
  end.engines[0].send(request_for(3000, end.mac(), end.mac()));
  end.engines[0].send(request_for(4000, end.mac(), end.mac()));
  until_idle(end);
  EXPECT_EQ(end.engines[2].received.size(), 1U);
  EXPECT_EQ(end.engines[0].received.size(), 1U) << "who has it refuses it";
}

TEST(Shards, WhoFindsNoRoomWaitsAndNothingIsLost) {
  ShardedEnd end;
  end.open("loop,queues=2");
  constexpr unsigned kFrames = 5'000;  // fills a ring many times
  for (unsigned i = 0; i < kFrames; ++i) end.engines[0].send(frame_for(1, end.mac(), end.mac(), i));
  const Time start = now();
  auto& sender = static_cast<LinkPort&>(*end.ports[0]);
  while (counter(sender, "shard_waited") == 0) sender.turn(end.engines[0], start);
  EXPECT_GT(end.engines[0].waiting(), 0U);
  // The time stands still: on a busy machine the receiver may not run for longer than a sender
  // waits.
  for (unsigned turns = 0; turns < kFrames && end.engines[1].received.size() < kFrames; ++turns)
    for (unsigned i = 0; i < 2; ++i)
      static_cast<LinkPort&>(*end.ports[i]).turn(end.engines[i], start);
  EXPECT_EQ(end.engines[1].received.size(), kFrames);
  EXPECT_EQ(end.total("shard_full"), 0U);
}

TEST(Shards, AShardThatTakesNothingHoldsUpTheOthersForAWhileOnly) {
  ShardedEnd end;
  end.open("loop,queues=3");
  for (unsigned i = 0; i < 3'000; ++i) end.engines[0].send(frame_for(1, end.mac(), end.mac(), i));
  const Frame to_other = frame_for(2, end.mac(), end.mac(), 7);
  end.engines[0].send(to_other);
  auto& sender = static_cast<LinkPort&>(*end.ports[0]);
  Time t = now();
  while (counter(sender, "shard_waited") == 0) sender.turn(end.engines[0], t);
  t += Seat::kPatience;
  for (int turns = 0; turns < 100; ++turns) sender.turn(end.engines[0], t);
  end.turn(2);
  EXPECT_EQ(end.engines[2].received, std::vector<Frame>{to_other});
  EXPECT_GT(counter(sender, "shard_full"), 0U);
}

// A bell that wakes a thread that sleeps for a Port.
class Sleeper {
 public:
  explicit Sleeper(Port& port) : bell_(eventfd(0, EFD_NONBLOCK)) { port.set_bell(bell_); }
  ~Sleeper() { close(bell_); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] bool rung() const {
    eventfd_t value = 0;
    return eventfd_read(bell_, &value) == 0;
  }

 private:
  const int bell_;
};

TEST(Shards, WhatIsHandedOverWakesASleeperAndNobodyElse) {
  ShardedEnd end;
  end.open("loop,queues=2");
  const Sleeper first(*end.ports[0]), second(*end.ports[1]);
  const Frame frame = frame_for(1, end.mac(), end.mac());
  end.engines[0].send(frame);
  end.turn(0);
  EXPECT_FALSE(second.rung()) << "it is awake";
  EXPECT_FALSE(end.ports[1]->prepare_to_sleep()) << "something has come";
  end.turn(1);
  ASSERT_TRUE(end.ports[1]->prepare_to_sleep());
  end.engines[0].send(frame);
  end.turn(0);
  EXPECT_TRUE(second.rung());
  EXPECT_FALSE(first.rung());
  end.ports[1]->woke_up();
  end.ports.clear();  // destroyed before the bells
}

TEST(Shards, WhoWaitsForRoomIsWokenWhenThereIsSome) {
  ShardedEnd end;
  end.open("loop,queues=2");
  const Sleeper first(*end.ports[0]);
  for (unsigned i = 0; i < 3'000; ++i) end.engines[0].send(frame_for(1, end.mac(), end.mac(), i));
  while (counter(*end.ports[0], "shard_waited") == 0) end.turn(0);
  ASSERT_TRUE(end.ports[0]->prepare_to_sleep());
  while (end.turn(1) > 0) {
  }
  EXPECT_TRUE(first.rung());
  end.ports.clear();
}
}  // namespace
}  // namespace stp::port::shards_test
