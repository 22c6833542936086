// SPDX-License-Identifier: BSD-3-Clause
// On the path of a frame no cache line is written by two shards of a program, but that of a ring
// between them where the one has to tell the other.
#include <gtest/gtest.h>

#include <cstddef>

#include "dpdk_port/dpdk/device_share.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link_port.h"
#include "dpdk_port/memif/ring.h"

namespace stp::port {

constexpr std::size_t line(std::size_t offset) {
  return offset / kCacheLine;
}

struct FrameRingLayout {
  // The receiver looks at sent_ in each turn. What the sender writes in each of its own is apart.
  static_assert(line(offsetof(FrameRing, pushed_)) > line(offsetof(FrameRing, sent_)));
  static_assert(line(offsetof(FrameRing, pushed_)) == line(offsetof(FrameRing, waits_)));
  // The sender writes its own positions, the receiver its own.
  static_assert(line(offsetof(FrameRing, received_)) > line(offsetof(FrameRing, waits_)));
  static_assert(line(offsetof(FrameRing, stalled_)) > line(offsetof(FrameRing, received_)));
  // What both only read stands on no line that one of them writes.
  static_assert(line(offsetof(FrameRing, room_)) < line(offsetof(FrameRing, sent_)));
};

namespace {

// Objects of different shards share no line with each other.
template <typename T>
constexpr bool kIsApart = alignof(T) >= kCacheLine && sizeof(T) % kCacheLine == 0;
static_assert(kIsApart<FrameRing>);
static_assert(kIsApart<LinkPort>);
static_assert(kIsApart<DeviceShare>);
static_assert(kIsApart<Crossing::Place>);
static_assert(kIsApart<Gate::Place>);
static_assert(kIsApart<memif::Sender> && kIsApart<memif::Receiver>);

bool is_on_a_line(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kCacheLine == 0;
}

TEST(ShardLayout, MemoryOfFramesBeginsAndEndsOnALine) {
  for (const std::size_t room : {1, 1514, 9018}) {
    const FrameBuffers buffers(3, room);
    EXPECT_TRUE(is_on_a_line(buffers.at(0)));
  }
}

TEST(ShardLayout, RingsOfACrossingStandApart) {
  Crossing crossing(3, 100);
  for (unsigned from = 0; from < 3; ++from)
    for (unsigned to = 0; to < 3; ++to) EXPECT_TRUE(is_on_a_line(&crossing.ring(from, to)));
}

}  // namespace
}  // namespace stp::port
