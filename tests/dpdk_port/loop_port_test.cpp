// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/dpdk_port/link_pair.h"

namespace stp::port::loop_port_test {
namespace {

constexpr MacAddr kElsewhere{{2, 0, 0, 0, 0, 0x99}};

LinkEnd open_end(const std::string& text) {
  LinkEnd end;
  end.open(text);
  return end;
}

TEST(LoopPort, SaysWhatItIs) {
  const LinkEnd end = open_end("loop");
  EXPECT_EQ(to_string(end.mac()), "02:00:00:00:00:01");
  EXPECT_EQ(end.port->info().mtu, 9000U);
  EXPECT_EQ(end.port->info().max_stu, 13U);
  EXPECT_TRUE(end.port->info().attaches);
  EXPECT_TRUE(end.port->link_up());
}

TEST(LoopPort, TakesItsOptions) {
  const LinkEnd end = open_end("loop,mac=02:00:00:00:00:05,mtu=1500,copy=1,address=10.9.0.5/24");
  EXPECT_EQ(to_string(end.mac()), "02:00:00:00:00:05");
  EXPECT_EQ(end.port->info().max_stu, 10U);
  EXPECT_FALSE(end.port->info().attaches);
  EXPECT_EQ(end.port->info().address, parse_ipv4("10.9.0.5"));
}

TEST(LoopPort, FramesToOurselvesComeBackInOrder) {
  LinkEnd end = open_end("loop");
  constexpr unsigned kFrames = 1000;  // enough for many turns
  for (unsigned i = 0; i < kFrames; ++i) end.engine.send(make_frame(end.mac(), end.mac(), 60, i));
  while (end.turn() > 0) {
  }
  ASSERT_EQ(end.engine.received.size(), kFrames);
  for (unsigned i = 0; i < kFrames; ++i) {
    ASSERT_EQ(end.engine.received[i], make_frame(end.mac(), end.mac(), 60, i));
  }
  EXPECT_EQ(counter(*end.port, "looped"), kFrames);
}

TEST(LoopPort, AttachedMemoryArrivesAndItsTokenComesBackOnce) {
  LinkEnd end = open_end("loop");
  const Frame memory = make_bytes(8192, 3);
  const Frame head = make_frame(end.mac(), end.mac(), 54);
  end.engine.send_attached(head, memory, 77);
  end.turn();
  EXPECT_TRUE(end.engine.returned.empty()) << "it is on its way, in the user's memory";
  while (end.turn() > 0) {
  }
  ASSERT_EQ(end.engine.received.size(), 1U);
  EXPECT_EQ(end.engine.received[0], join(head, memory));
  EXPECT_EQ(end.engine.returned, (std::map<RegionId, unsigned>{{77, 1}}));
}

TEST(LoopPort, CarriesTheLargestFrameThereIs) {
  LinkEnd end = open_end("loop,mtu=65640");
  const Frame frame = make_frame(end.mac(), end.mac(), frame_room(65'640));
  end.engine.send(frame);
  while (end.turn() > 0) {
  }
  ASSERT_EQ(end.engine.received.size(), 1U);
  EXPECT_EQ(end.engine.received[0], frame);
}

TEST(LoopPort, FramesBetweenDroppedOnesArriveWhole) {
  LinkEnd end = open_end("loop");
  std::vector<Frame> ours;
  for (unsigned i = 0; i < 100; ++i) {
    const bool to_us = i % 3 != 0;
    const Frame frame = make_frame(to_us ? end.mac() : kElsewhere, end.mac(), 60 + i, i);
    if (to_us) ours.push_back(frame);
    end.engine.send(frame);
  }
  while (end.turn() > 0) {
  }
  EXPECT_EQ(end.engine.received, ours);
  EXPECT_EQ(counter(*end.port, "tx_dropped"), 34U);
}

TEST(LoopPort, FramesToOthersAreCountedAndDropped) {
  LinkEnd end = open_end("loop");
  const Frame memory = make_bytes(512, 1);
  end.engine.send_attached(make_frame(kElsewhere, end.mac(), 54), memory, 5);
  while (end.turn() > 0) {
  }
  EXPECT_TRUE(end.engine.received.empty());
  EXPECT_EQ(end.engine.returned[5], 1U);
  EXPECT_EQ(counter(*end.port, "tx_dropped"), 1U);
}

TEST(LoopPort, ResolvesOnlyThisHost) {
  LinkEnd end = open_end("loop,address=10.9.0.5/24");
  EXPECT_EQ(end.port->resolve(*parse_ipv4("10.9.0.5"), 0), end.mac());
  EXPECT_EQ(end.port->resolve(*parse_ipv4("127.0.0.1"), 0), end.mac());
  EXPECT_FALSE(end.port->resolve(*parse_ipv4("10.9.0.6"), 0));
}

TEST(LoopPort, RunsTimersThatAreDueAndNoOthers) {
  LinkEnd end = open_end("loop");
  end.engine.deadline = 1000;
  end.port->turn(end.engine, 999);
  EXPECT_EQ(end.engine.expired, 0U);
  end.port->turn(end.engine, 1000);
  EXPECT_EQ(end.engine.expired, 1U);
  EXPECT_EQ(end.port->turn(end.engine, 1001), 0U);
}

TEST(LoopPort, TapSeesALoopedFrameOnce) {
  LinkEnd end = open_end("loop");
  RecordingTap tap;
  end.port->set_tap(&tap);
  const Frame memory = make_bytes(300, 1);
  const Frame head = make_frame(end.mac(), end.mac(), 54);
  end.engine.send_attached(head, memory, 1);
  while (end.turn() > 0) {
  }
  ASSERT_EQ(tap.sent.size(), 1U);
  EXPECT_EQ(tap.sent[0], join(head, memory));
  EXPECT_TRUE(tap.received.empty());
}

TEST(Port, ADaemonsLinkIsNotOpenedHere) {
  std::string error;
  EXPECT_FALSE(open_link("stpd:/run/stpd/stpd.sock", error));
  EXPECT_NE(error.find("stpd:/run/stpd/stpd.sock"), std::string::npos) << error;
}

TEST(SystemRandom, DoesNotRepeatItself) {
  std::map<std::uint32_t, int> seen;
  for (int i = 0; i < 200; ++i) ++seen[system_random().next()];
  EXPECT_GT(seen.size(), 190U);
}

TEST(Clock, NeverRunsBackwards) {
  Time last = now();
  for (int i = 0; i < 1000; ++i) {
    const Time next = now();
    ASSERT_GE(next, last);
    last = next;
  }
}

}  // namespace
}  // namespace stp::port::loop_port_test
