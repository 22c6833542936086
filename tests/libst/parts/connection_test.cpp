// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/connection.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <new>

#include "stp/channel/rings.h"

namespace stp::client {
namespace {

constexpr std::uint64_t kAlice = 0x0200'0000'0001, kBob = 0x0200'0000'0002;

class InboxTest : public testing::Test {
 protected:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{kCacheLine});
    }
  };
  static constexpr ChannelGeometry kGeometry{.slots = 2 * Inbox::kMostAside, .credits = 16};

  InboxTest()
      : memory(new (std::align_val_t{kCacheLine}) std::byte[kGeometry.size()]{}),
        node(memory.get(), kGeometry),
        user(memory.get()) {}
  void deliver(std::uint64_t sender, std::uint32_t number) {
    ReceivedEntry entry{};
    entry.source_mac = sender;
    entry.header.sync = number;
    ASSERT_TRUE(node.deliver(entry, NodeChannel::Place::kSlot));
  }
  // The number of the header that comes next from `sender`, or the result without one.
  int take(std::uint64_t sender) {
    ReceivedEntry entry{};
    const auto result = inbox.take(user, sender, entry);
    return result == 1 ? static_cast<int>(entry.header.sync) : result;
  }

  std::unique_ptr<std::byte[], Free> memory;
  NodeChannel node;
  UserChannel user;
  Inbox inbox;
};

TEST_F(InboxTest, HeadersComeInOrder) {
  EXPECT_EQ(take(kAnyone), 0);
  deliver(kAlice, 1);
  deliver(kBob, 2);
  EXPECT_EQ(take(kAnyone), 1);
  EXPECT_EQ(take(kAnyone), 2);
  EXPECT_EQ(take(kAnyone), 0);
}

TEST_F(InboxTest, WhatOneSenderSentIsTakenFromAmongTheOthersAndTheOthersKeepTheirOrder) {
  deliver(kAlice, 1);
  deliver(kAlice, 2);
  deliver(kBob, 3);
  deliver(kAlice, 4);
  EXPECT_EQ(take(kBob), 3);
  EXPECT_EQ(take(kBob), 0);
  deliver(kBob, 5);
  EXPECT_EQ(take(kAlice), 1);
  EXPECT_EQ(take(kAnyone), 2);
  EXPECT_EQ(take(kAnyone), 4);
  EXPECT_EQ(take(kAnyone), 5);
}

TEST_F(InboxTest, ASearchSetsOnlySoManyAsideAndTheyAreNotLost) {
  constexpr auto kMost = static_cast<std::uint32_t>(Inbox::kMostAside);
  for (std::uint32_t i = 1; i <= kMost; ++i) deliver(kAlice, i);
  EXPECT_EQ(take(kBob), 0) << "all are set aside, and none of Bob waits";
  deliver(kAlice, kMost + 1);
  deliver(kBob, kMost + 2);
  EXPECT_EQ(take(kBob), -ENOBUFS);
  for (std::uint32_t i = 1; i <= kMost + 1; ++i) ASSERT_EQ(take(kAnyone), static_cast<int>(i));
  EXPECT_EQ(take(kBob), static_cast<int>(kMost + 2));
}

}  // namespace
}  // namespace stp::client
