// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/frame_ring.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/dpdk_port/script_engine.h"

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
  constexpr std::uint32_t kFrames = 100'000;
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
