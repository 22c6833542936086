// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/deliver.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

TEST(Deliver, the_user_gets_all_that_belongs_to_the_header_and_is_told) {
  Mechanisms with;
  auto& vc = with.open(1);
  auto user = with.vcs.user();
  user.gather();
  const std::array option{std::byte{1}, std::byte{2}};
  const auto header = wire::to_header(wire::NoOperation{}, wire::flag::kInterrupt);
  ASSERT_TRUE(
      deliver(vc, with.wake_ups, vc.peer_mac, header, option, NodeChannel::Place::kSlot, 99));
  with.wake_ups.flush(100);
  EXPECT_EQ(with.events(Event::Kind::kNews), 1U);
  ReceivedEntry got;
  ASSERT_TRUE(user.receive(got));
  EXPECT_EQ(got.header.op_flags, header.op_flags);
  EXPECT_EQ(got.source_mac, vc.peer_mac.to_u64());
  EXPECT_EQ(got.length, 99U);
  ASSERT_EQ(got.payload_length, 2U);
  EXPECT_EQ(std::memcmp(got.payload, option.data(), 2), 0);
}

TEST(Deliver, a_user_without_a_free_slot_is_woken_at_once) {
  Mechanisms with;
  auto& vc = with.open(1);
  auto user = with.vcs.user();
  const auto header = wire::to_header(wire::NoOperation{});
  const auto arrives = [&] {
    return deliver(vc, with.wake_ups, vc.peer_mac, header, {}, NodeChannel::Place::kSlot);
  };
  user.begin_sleep();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(arrives());
  with.wake_ups.flush(100);
  EXPECT_EQ(with.events(Event::Kind::kWake), 0U) << "that can wait";
  EXPECT_FALSE(arrives());
  with.wake_ups.flush(100);
  EXPECT_EQ(with.events(Event::Kind::kWake), 1U);
}

}  // namespace
}  // namespace stp::test
