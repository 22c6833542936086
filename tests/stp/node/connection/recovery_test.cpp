// SPDX-License-Identifier: BSD-3-Clause
// Missing Blocks are requested again (section 10).
#include "stp/channel/retry.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Recover : public Writing {
 protected:
  static constexpr std::uint32_t kBlock = 4096;
  // Much shorter than the data timeout.
  static constexpr Time kShort = 3 * kMillisecond;
  // Longer than the data timeout, shorter than its first doubling.
  static constexpr Time kSilence = 60 * kMillisecond;
  // The same, after a CTS that was sent at the end of kSilence.
  static constexpr Time kLongSilence = 110 * kMillisecond;

  void SetUp() override { start({.recover = true}); }

  // Begins a Transfer and grants `count` Blocks. Returns the CTS that A got.
  std::vector<wire::Header> grant_blocks(std::uint32_t count) {
    put(a, ca, rts(count * kBlock));
    settle();
    for (std::uint32_t i = 0; i < count; ++i) put(b, cb, cts(i, kTargetBufx + i, 0, 12));
    settle();
    std::vector<wire::Header> permissions;
    while (const auto got = get(ca)) permissions.push_back(got->header);
    EXPECT_EQ(permissions.size(), count);
    return permissions;
  }
  // Begins and grants another Transfer, with new ids.
  wire::Header grant_next(std::uint32_t length) {
    auto offer = rts(length), permission = cts();
    offer.header.s_id = permission.header.d_id = ++transfers_;
    permission.header.s_id = transfers_;
    put(a, ca, offer);
    settle();
    put(b, cb, permission);
    settle();
    const auto got = get(ca);
    EXPECT_TRUE(got);
    return got ? got->header : wire::Header{};
  }
  static wire::Header with_sync(wire::Header h, std::uint32_t sync) {
    h.sync = sync;
    return h;
  }
  // The Blocks whose CTS A gets again within `span`.
  std::vector<std::uint32_t> asked_in(Time span) {
    std::vector<std::uint32_t> blocks;
    for (const auto end = now + span; now < end;) {
      pass(kMillisecond);
      while (const auto got = get(ca))  // nothing is repeated to a user that does not read: 10.21
        if (got->header.op() == Op::kClearToSend) blocks.push_back(got->header.b_num);
    }
    return blocks;
  }

 private:
  std::uint32_t transfers_ = 100;
};

// protocol: 9.5, 10.3
TEST_F(Recover, the_missing_tail_is_asked_for_by_a_repeated_cts) {
  const auto permission = grant(20'000);
  wire = [](const Frame& f, bool) {
    const auto h = parsed(f).header;
    return h.op() == Op::kData && h.param == 2 ? 0U : 1U;
  };
  put(a, ca, data(permission, 20'000));
  settle();
  EXPECT_FALSE(get(ca));
  pass(100 * kMillisecond);
  const auto again = get(ca);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.op(), Op::kClearToSend);
  EXPECT_EQ(again->header.sync, 2U * 4096) << "F_Offset: what came after it was placed";
  EXPECT_EQ(again->header.bufx, kTargetBufx);
  EXPECT_GE(b.count(Counter::kCtsRepeated), 1U);
}

// protocol: 10.23
TEST_F(Recover, a_repeated_cts_tells_which_stus_are_missing) {
  const auto permission = grant(20'000);
  put(a, ca, data(permission, 20'000));
  for (int i = 0; const auto frame = take(a); ++i)
    if (i != 1 && i != 3) arrive(b, *frame);
  pass(100 * kMillisecond);
  const auto again = get(ca);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.sync, 4096U);
  ASSERT_EQ(again->payload_length, wire::kOptionSize);
  EXPECT_EQ(again->payload[0], 0xa0) << "STUs 1 and 3: the first bit, and the third";
  for (unsigned i = 1; i < wire::kOptionSize; ++i) EXPECT_EQ(again->payload[i], 0) << i;
}

// protocol: 10.23
TEST_F(Recover, a_part_from_the_middle_of_a_block_completes_it) {
  const auto permission = grant(20'000);
  put(a, ca, data(permission, 20'000));
  for (int i = 0; const auto frame = take(a); ++i)
    if (i != 1) arrive(b, *frame);
  EXPECT_FALSE(get(cb));
  pass(100 * kMillisecond);
  ASSERT_TRUE(get(ca));
  auto part = data(permission, kStu);
  part.header.bufx += 1;
  part.bufx += 1;
  part.limited = 1;
  put(a, ca, part);
  settle();
  EXPECT_TRUE(get(cb));
  EXPECT_TRUE(arrived(20'000));
  EXPECT_EQ(b.count(Counter::kBadStuNum), 0U) << "it has no Last";
}

// protocol: 10.22
TEST_F(Recover, what_is_far_behind_the_last_of_its_block_is_asked_for_at_once) {
  const auto permission = grant(12 * kStu);
  put(a, ca, data(permission, 12 * kStu));
  for (int i = 0; const auto frame = take(a); ++i)
    if (i != 3) arrive(b, *frame);
  settle();
  EXPECT_EQ(asked_in(kShort), std::vector<std::uint32_t>({0}));
  EXPECT_EQ(asked_in(kShort).size(), 0U) << "once";
}

// protocol: 10.22
TEST_F(Recover, what_is_near_the_last_of_its_block_may_have_fallen_behind) {
  const auto permission = grant(12 * kStu);
  put(a, ca, data(permission, 12 * kStu));
  std::vector<Frame> sent;
  while (const auto frame = take(a)) sent.push_back(*frame);
  for (std::size_t i = 0; i < sent.size(); ++i)
    if (i != 4) arrive(b, sent[i]);
  settle();
  EXPECT_EQ(asked_in(kShort).size(), 0U) << "seven STUs may have overtaken it on their way";
  arrive(b, sent[4]);
  EXPECT_TRUE(arrived(12 * kStu));
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
}

// protocol: 10.21
TEST_F(Recover, nothing_is_asked_for_again_of_a_host_that_is_away) {
  const auto permission = grant(20'000);
  wire = [](const Frame&, bool) { return 0U; };
  put(a, ca, data(permission, 20'000));
  pass(200 * kMillisecond);
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
  EXPECT_GE(b.count(Counter::kRetries), 2U) << "RS";
  EXPECT_LE(b.count(Counter::kRetries), 8U);
}

// A's user has not read the CTS, and its Node reports that.
// protocol: 10.21
TEST_F(Recover, nothing_is_asked_for_again_of_a_user_who_has_not_read_for_a_while) {
  put(a, ca, rts(20'000));
  settle();
  put(b, cb, cts());
  pass(40 * kMillisecond + Doubt::kLongest);
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
  pass(300 * kMillisecond);
  EXPECT_GE(b.count(Counter::kCtsRepeated), 1U) << "the CTS may have been lost";
}

// protocol: 10.3
TEST_F(Recover, intervals_grow_and_nothing_is_asked_once_the_block_is_complete) {
  const auto permission = grant(20'000);
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
  const auto permission = grant(3 * 4096);
  pass(2 * kSecond);
  while (get(ca))
    ;
  inject_stu(stu(permission, 0, 0), 0, 4096);
  pass(60 * kMillisecond);
  const auto again = get(ca);
  ASSERT_TRUE(again) << "four round trips of 10 ms, not the second that was running";
  EXPECT_EQ(again->header.sync, 4096U);
}

// protocol: 10.14
TEST_F(Recover, in_silence_one_block_is_asked_for_and_each_answer_lets_twice_as_many_be) {
  const auto permissions = grant_blocks(7);
  EXPECT_EQ(asked_in(kSilence), std::vector<std::uint32_t>({0}));
  put(a, ca, data(permissions[0], kBlock));
  settle();
  EXPECT_EQ(asked_in(kSilence), std::vector<std::uint32_t>({1, 2}));
  for (const auto i : {1, 2}) put(a, ca, data(permissions[i], kBlock));
  settle();
  EXPECT_EQ(asked_in(kSilence), std::vector<std::uint32_t>({3, 4, 5, 6}));
}

// protocol: 10.14
TEST_F(Recover, blocks_that_come_unasked_after_silence_show_that_it_was_a_pause) {
  const auto permissions = grant_blocks(7);
  EXPECT_EQ(asked_in(kSilence).size(), 1U);
  for (const auto i : {0, 1, 2, 3}) put(a, ca, data(permissions[i], kBlock));
  settle();
  EXPECT_EQ(cb.user.cts_repeated(), 0U) << "nothing was lost";
  EXPECT_EQ(asked_in(kSilence), std::vector<std::uint32_t>({4}));
}

// protocol: 10.14
TEST_F(Recover, a_sending_that_goes_on_had_lost_nothing_and_another_one_had) {
  for (std::uint32_t const sync : {5, 6}) {
    const auto permission = grant_next(3 * kBlock);
    inject_stu(with_sync(stu(permission, 0, 0), 5), 0, kBlock);
    EXPECT_FALSE(asked_in(kLongSilence).empty());
    inject_stu(with_sync(stu(permission, 1, kBlock), sync), kBlock, kBlock);
    EXPECT_EQ(cb.user.cts_repeated(), sync - 5);
  }
}

// protocol: 10.4, 10.14
TEST_F(Recover, a_block_that_others_overtook_is_asked_for_alone_and_counts_as_lost) {
  const auto permissions = grant_blocks(3);
  put(a, ca, data(permissions[1], kBlock));
  EXPECT_EQ(asked_in(kLongSilence), std::vector<std::uint32_t>({0, 2}))
      << "the one that was overtaken, and one for the silence";
  put(a, ca, data(permissions[0], kBlock));
  settle();
  EXPECT_EQ(cb.user.cts_repeated(), 1U);
}

// protocol: 10.22
TEST_F(Recover, a_block_that_others_passed_by_far_is_asked_for_at_once) {
  const auto permissions = grant_blocks(12);
  for (const auto i : {0, 2, 3, 4, 5, 6, 7, 8}) put(a, ca, data(permissions[i], kBlock));
  EXPECT_EQ(asked_in(kShort).size(), 0U) << "seven STUs may have overtaken it on their way";
  put(a, ca, data(permissions[9], kBlock));
  EXPECT_EQ(asked_in(kShort), std::vector<std::uint32_t>({1}));
  put(a, ca, data(permissions[10], kBlock));
  EXPECT_EQ(asked_in(kShort).size(), 0U) << "it counts as granted last";
}

// protocol: 10.22
TEST_F(Recover, a_block_is_asked_for_once_however_many_follow_that_were_granted_before) {
  const auto permissions = grant_blocks(20);
  for (int i = 1; i < 9; ++i) put(a, ca, data(permissions[i], kBlock));
  EXPECT_EQ(asked_in(kShort), std::vector<std::uint32_t>({0}));
  for (int i = 9; i < 20; ++i) put(a, ca, data(permissions[i], kBlock));
  EXPECT_EQ(asked_in(kShort).size(), 0U);
}

// protocol: 10.22
TEST_F(Recover, a_block_that_had_only_fallen_behind_doubles_how_far_others_may_go) {
  const auto permissions = grant_blocks(28);
  for (int i = 1; i < 9; ++i) put(a, ca, data(permissions[i], kBlock));
  EXPECT_EQ(asked_in(kShort), std::vector<std::uint32_t>({0}));
  for (int twice = 0; twice < 2; ++twice) put(a, ca, data(permissions[0], kBlock));
  for (int i = 10; i < 25; ++i) put(a, ca, data(permissions[i], kBlock));
  EXPECT_EQ(asked_in(kShort).size(), 0U) << "fifteen STUs have passed it: sixteen may";
  put(a, ca, data(permissions[25], kBlock));
  EXPECT_EQ(asked_in(kShort), std::vector<std::uint32_t>({9}));
}

// protocol: 10.13
TEST_F(Recover, a_sender_whose_pauses_are_known_is_not_asked_again_for_each) {
  // B has to ask for credit, and so learns that a round trip takes 20 us.
  for (int i = 0; i < 40; ++i) put(b, cb, control(Op::kNoOperation));
  while (const auto frame = take(b)) arrive(a, *frame);
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
    const auto permission = get(ca);
    ASSERT_TRUE(permission);
    pass(i == 0 ? 900 * kMicrosecond : 1'700 * kMicrosecond);
    put(a, ca, data(permission->header, kLength));
    settle();
  }
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
}

}  // namespace
}  // namespace stp::test
