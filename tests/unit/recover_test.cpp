// SPDX-License-Identifier: BSD-3-Clause
// Blocks that stay away are asked for again (section 10).
#include "tests/unit/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Recover : public Writing {
 protected:
  void SetUp() override { start({.recover = true}); }
};

// protocol: 9.5, 10.3
TEST_F(Recover, the_missing_tail_is_asked_for_by_a_repeated_cts) {
  auto const permission = grant(20'000);
  wire = [this](const Frame& f, bool) {
    auto const h = parsed(f).header;
    return h.op() == Op::kData && h.param == 2 ? 0U : 1U;
  };
  put(a, ca, data(permission, 20'000));
  settle();
  EXPECT_FALSE(get(ca));
  pass(100 * kMillisecond);
  auto const again = get(ca);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.op(), Op::kClearToSend);
  EXPECT_EQ(again->header.sync, 2U * 4096) << "F_Offset: what came after it was placed";
  EXPECT_EQ(again->header.bufx, kTargetBufx);
  EXPECT_GE(b.count(Counter::kCtsRepeated), 1U);
}

// protocol: 10.3
TEST_F(Recover, intervals_grow_and_nothing_is_asked_once_the_block_is_complete) {
  auto const permission = grant(20'000);
  pass(3 * kSecond);
  std::size_t asked = 0;
  while (get(ca)) ++asked;
  EXPECT_GE(asked, 4U);
  EXPECT_LE(asked, 12U);
  put(a, ca, data(permission, 20'000));
  pass(5 * kSecond);
  EXPECT_FALSE(get(ca));
  EXPECT_TRUE(arrived(20'000));
}

// protocol: 10.3
TEST_F(Recover, an_stu_that_comes_late_ends_the_doubling_of_intervals) {
  auto const permission = grant(3 * 4096);
  pass(2 * kSecond);
  while (get(ca))
    ;
  inject_stu(stu(permission, 0, 0), 0, 4096);
  pass(60 * kMillisecond);
  auto const again = get(ca);
  ASSERT_TRUE(again) << "four round trips of 10 ms, not the second that was running";
  EXPECT_EQ(again->header.sync, 4096U);
}

// protocol: 10.13
TEST_F(Recover, a_sender_whose_pauses_are_known_is_not_asked_again_for_each) {
  // B has to ask for credit, and learns so that a round trip takes 20 us.
  for (int i = 0; i < 40; ++i) put(b, cb, control(Op::kNoOperation));
  while (auto const frame = take(b)) arrive(a, *frame);
  now += 20 * kMicrosecond;
  settle();
  while (get(ca))
    ;
  constexpr std::uint32_t kBlocks = 6, kLength = 4096;
  put(a, ca, rts(kBlocks * kLength));
  settle();
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    put(b, cb, cts(i, kTargetBufx + i, 0, 12));
    settle();
    auto const permission = get(ca);
    ASSERT_TRUE(permission);
    pass(i == 0 ? 900 * kMicrosecond : 1'700 * kMicrosecond);
    put(a, ca, data(permission->header, kLength));
    settle();
  }
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
}

}  // namespace
}  // namespace stp::test
