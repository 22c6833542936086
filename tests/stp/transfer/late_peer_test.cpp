// SPDX-License-Identifier: BSD-3-Clause
// A peer that is late, and a Node that lets requests wait: nothing is repeated, or given up, that
// is not lost (protocol, section 10).
#include <vector>

#include "stp/channel/retry.h"
#include "tests/stp/transfer/lying_peer_fixture.h"

namespace stp::test::late_peer_test {
namespace {

class SilentUser : public LyingPeer {
 protected:
  static constexpr Time kFirst = 40 * kMillisecond, kTimeout = 10 * kMillisecond;

  // Only the peer's Node answers, with this many free Slots.
  void answer_slots(std::uint32_t free) {
    hears = [this, free](const wire::Header& h) {
      if (h.op() != Op::kRequestState) return;
      EXPECT_EQ(h.d_id, wire::kNoId);
      auto rsr = header(Op::kRequestStateResponse);
      rsr.param = static_cast<std::uint16_t>(free);
      rsr.sync = h.sync;
      rsr.b_num = rsr.d_id = wire::kNoId;
      say(rsr);
    };
  }
};

// protocol: 10.21
TEST_F(SilentUser, who_has_read_a_request_and_does_not_answer_has_lost_it_or_the_answer) {
  answer_slots(kSlots);
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  run(kFirst + kTimeout - kMicrosecond);
  EXPECT_EQ(left[Op::kRequestState], 1U);
  EXPECT_EQ(left[Op::kRequestToSend], 1U);
  run(kMicrosecond);
  EXPECT_EQ(left[Op::kRequestToSend], 2U);
}

// protocol: 10.21
TEST_F(SilentUser, who_has_not_read_is_sent_nothing_again_for_a_while) {
  answer_slots(kSlots - 1);
  ASSERT_EQ(sequencer.read(1, kLanding), 0);
  run(kFirst + Doubt::kLongest - kMicrosecond);
  EXPECT_EQ(left[Op::kRequestToReceive], 1U);
  EXPECT_GE(left[Op::kRequestState], 4U);
  EXPECT_LE(left[Op::kRequestState], 8U);
  run(kSecond);
  EXPECT_GE(left[Op::kRequestToReceive], 2U);
}

// protocol: 10.21
TEST_F(SilentUser, a_get_is_answered_by_the_node_whatever_its_user_has_read) {
  open_region();
  answer_slots(0);
  ASSERT_EQ(sequencer.get(1, region, 0, {3, {7, 0}, 100}), 0);
  work();
  run(2 * kFirst - kMicrosecond);
  EXPECT_EQ(left[Op::kGet], 1U);
  run(kMicrosecond);
  EXPECT_EQ(left[Op::kGet], 2U);
}

// protocol: 10.21
TEST_F(SilentUser, a_node_that_says_nothing_is_asked_and_sent_nothing_again) {
  hears = nullptr;
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  run(20 * kSecond);
  EXPECT_EQ(left[Op::kRequestToSend], 1U);
  EXPECT_LE(left[Op::kRequestState], most_repeats(20 * kSecond));
  answer_slots(kSlots);
  run(2 * kSecond);
  EXPECT_GE(left[Op::kRequestToSend], 2U);
}

// A program may be stopped, by a debugger say. Its Node answers for it.
// protocol: 10.11, 10.17, 10.18
TEST_F(SilentUser, who_is_stopped_is_waited_for_by_a_patient_one) {
  sequencer.be_patient();
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);  // granted, and never confirmed
  ASSERT_EQ(sequencer.post_receive(2, kLanding), 0);
  offer();
  work();
  hears = [this](const wire::Header& h) {
    if (h.op() != Op::kRequestState) return;
    if (h.d_id != wire::kNoId) return say_state(h, 0);
    auto rsr = header(Op::kRequestStateResponse);
    rsr.param = kSlots - 1;
    rsr.sync = h.sync;
    rsr.b_num = rsr.d_id = wire::kNoId;
    say(rsr);
  };
  ASSERT_EQ(sequencer.write(3, {}, 10'000), 0);
  ASSERT_EQ(sequencer.read(4, kLanding), 0);
  ASSERT_EQ(sequencer.request_region(5, 100, 4), 0);
  run(kHour);
  for (const auto& [what, how] : ended) EXPECT_EQ(how.second, 0) << what.second << " has failed";
  takes = false;
  ASSERT_EQ(sequencer.write(6, {}, 10'000), 0);
  run(kHour);
  EXPECT_FALSE(sequencer.is_stuck());
}

// The Node takes each request late. The first interval of a millisecond must count from then.
// protocol: 10.20
TEST_F(LyingPeer, each_first_repeat_counts_from_the_departure_of_its_request) {
  open_region();
  hears = nullptr;
  const std::pair<Op, std::function<int()>> requests[] = {
      {Op::kRequestToReceive, [&] { return sequencer.read(2, kLanding); }},
      {Op::kRequestMemoryRegion, [&] { return sequencer.request_region(3, 100, 4); }},
      {Op::kGet,
       [&] {
         return sequencer.get(4, region, 0, {3, {7, 0}, 100});
       }},
      {Op::kRequestToSend, [&] { return sequencer.write(1, {}, 100); }},
      {Op::kEnd, [&] { return sequencer.end_region(region); }}};
  for (const auto& [op, begin] : requests) {
    run(kHour);  // until nothing of the last request is left
    sequencer.expire(now);
    left.clear();
    takes = false;
    ASSERT_EQ(begin(), 0);
    const auto begun = now;
    work();
    const auto first = sequencer.next_deadline() - begun;
    now += first - kMicrosecond;
    sequencer.taken(taken += left[op], now);
    takes = true;
    run(first - kMicrosecond);
    EXPECT_EQ(left[Op::kRequestState], 0U) << wire::short_name(op);
    run(kMicrosecond);
    EXPECT_EQ(left[Op::kRequestState], 1U) << wire::short_name(op);
    EXPECT_EQ(left[op], 1U) << wire::short_name(op);
  }
}

// protocol: 10.19
TEST_F(LyingPeer, a_long_get_whose_pieces_come_slowly_is_not_asked_for_again) {
  open_region();
  hears = nullptr;
  std::vector<wire::Header> asked;
  hears = [&](const wire::Header& h) { asked.push_back(h); };
  ASSERT_EQ(sequencer.get(1, region, 0, {3, {7, 0}, 16 * 65'536}), 0);
  work();
  ASSERT_EQ(asked.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    run(5 * kMillisecond);
    auto data = header(Op::kData, wire::flag::kLast);
    data.mx = asked[i].mx;
    data.bufx = asked[i].sync;
    data.offset = asked[i].b_num;
    data.b_num = asked[i].s_id;
    data.d_id = asked[i].d_id;
    say(data);
  }
  work();
  EXPECT_EQ(ended[std::pair(Kind::kGet, Context{1})].second, 0);
  EXPECT_EQ(left[Op::kGet], 16U);
}

// A peer that answers each question about its Slots with none.
// protocol: 10.18
TEST_F(LyingPeer, requests_for_which_there_is_never_a_slot) {
  takes = false;
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  run(29 * kSecond);
  EXPECT_FALSE(sequencer.is_stuck());
  run(2 * kSecond);
  EXPECT_TRUE(sequencer.is_stuck());
}

// protocol: 10.18
TEST_F(LyingPeer, requests_that_wait_long_and_leave_one_by_one_are_not_stuck) {
  takes = false;
  for (Context i = 0; i < 4; ++i) ASSERT_EQ(sequencer.write(i, {}, 10'000), 0);
  for (int i = 0; i < 4; ++i) {
    run(20 * kSecond);
    sequencer.taken(++taken);
    EXPECT_FALSE(sequencer.is_stuck());
  }
  takes = true;
  sequencer.taken(taken = handed);
  run(kHour);
  EXPECT_FALSE(sequencer.is_stuck()) << "nothing waits";
}

}  // namespace
}  // namespace stp::test::late_peer_test
