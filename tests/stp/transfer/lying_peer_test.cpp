// SPDX-License-Identifier: BSD-3-Clause
// A peer that answers everything but does nothing: every operation of the managed layer must still
// end in time, with few frames.
#include <tuple>
#include <vector>

#include "stp/wire/operations.h"
#include "tests/stp/transfer/lying_peer_fixture.h"

namespace stp::test::lying_peer_test {
namespace {

// protocol: 10.11
TEST_F(LyingPeer, a_write_that_nobody_answers) {
  hears = nullptr;
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  expect_timeout(Kind::kWrite, 1, kWait + kEnd);
  EXPECT_LE(left[Op::kRequestToSend], most_repeats(kWait));
  EXPECT_LE(left[Op::kEnd], most_repeats(kEnd));
}

// protocol: 10.16, 10.17
TEST_F(LyingPeer, a_write_that_is_granted_and_never_complete) {
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  expect_timeout(Kind::kWrite, 1, kWait + kEnd);
  EXPECT_LE(left[Op::kRequestState], most_repeats(kWait) + most_repeats(kEnd)) << "END's as well";
  EXPECT_EQ(left[Op::kData], 1U);
}

// Each RS is answered by the same CTS, which is no progress.
// protocol: 10.16, 10.17
TEST_F(LyingPeer, a_write_whose_block_is_asked_for_again_and_again) {
  wire::Header rts;
  hears = [&](const wire::Header& h) {
    if (h.op() == Op::kRequestToSend) rts = h;
    answer(h);
    if (h.op() == Op::kRequestState) grant(rts);
  };
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  expect_timeout(Kind::kWrite, 1, kWait + kEnd);
  EXPECT_LE(left[Op::kRequestState], most_repeats(kWait) + most_repeats(kEnd)) << "END's as well";
  EXPECT_LE(left[Op::kData], most_repeats(kWait));
}

// protocol: 10.11
TEST_F(LyingPeer, a_write_that_is_said_to_wait_for_a_receive) {
  hears = [this](const wire::Header& h) {
    if (h.op() == Op::kRequestToSend) see(h);
  };
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  expect_timeout(Kind::kWrite, 1, 24 * kHour + kEnd + kSecond);
  EXPECT_LE(left[Op::kRequestToSend], 24 * 3600 + most_repeats(0));
}

// protocol: 10.11, 10.17
TEST_F(LyingPeer, a_message_that_is_announced_and_never_sent) {
  ASSERT_EQ(sequencer.post_receive(1, kLanding), 0);
  offer();
  hears = [this](const wire::Header& h) {
    if (h.op() == Op::kClearToSend) offer();  // once more
    answer(h);
  };
  expect_timeout(Kind::kReceive, 1, kWait);
  EXPECT_LE(left[Op::kClearToSend], 2U);
  EXPECT_LE(left[Op::kRequestAnswer], 2U);
}

// protocol: 10.11
TEST_F(LyingPeer, a_read_that_nobody_answers) {
  hears = nullptr;
  ASSERT_EQ(sequencer.read(1, kLanding), 0);
  expect_timeout(Kind::kRead, 1, kWait + kEnd);
  EXPECT_LE(left[Op::kRequestToReceive], most_repeats(kWait));
}

// protocol: 10.11
TEST_F(LyingPeer, a_read_that_is_said_to_wait_for_its_user) {
  ASSERT_EQ(sequencer.read(1, kLanding), 0);
  expect_timeout(Kind::kRead, 1, 24 * kHour + kEnd + kSecond);
  EXPECT_LE(left[Op::kRequestToReceive], 24 * 3600 + most_repeats(0));
}

// protocol: 10.17
TEST_F(LyingPeer, a_read_whose_answer_is_announced_and_never_sent) {
  hears = [this](const wire::Header& h) {
    if (h.op() == Op::kRequestToReceive) return offer(h.s_id);
    answer(h);
  };
  ASSERT_EQ(sequencer.read(1, kLanding), 0);
  expect_timeout(Kind::kRead, 1, kWait);
}

// protocol: 10.11
TEST_F(LyingPeer, a_region_that_is_never_opened) {
  hears = [this](const wire::Header& h) { see(h); };
  ASSERT_EQ(sequencer.request_region(1, 100, 4), 0);
  expect_timeout(Kind::kRegion, 1, kWait + kEnd);
  EXPECT_LE(left[Op::kRequestMemoryRegion], most_repeats(kWait));
}

class LostPut : public LyingPeer, public ::testing::WithParamInterface<std::tuple<bool, bool>> {};

// protocol: 9.36, 10.16, 10.17
TEST_P(LostPut, ends_in_time_and_is_repeated_at_growing_intervals) {
  std::tie(echoes_b_num, answers_data) = GetParam();
  open_region();
  ASSERT_EQ(sequencer.put(1, region, 0, {}, 100), 0);
  expect_timeout(Kind::kPut, 1, kWait);
  EXPECT_LE(left[Op::kRequestState], most_repeats(kWait) + most_repeats(kEnd)) << "END's as well";
  EXPECT_LE(left[Op::kData], most_repeats(kWait));
  EXPECT_GE(left[Op::kData], 10U) << "B_seq says that it is lost, whatever B_num is";
}

INSTANTIATE_TEST_SUITE_P(States, LostPut, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

// protocol: 9.36
TEST_F(LyingPeer, a_put_of_which_b_num_and_b_seq_say_different_things_is_where_b_seq_is) {
  open_region();
  for (Context i = 0; i < 3; ++i) ASSERT_EQ(sequencer.put(i, region, 0, {}, 100), 0);
  std::uint32_t stored = 0;
  std::vector<std::uint32_t> sent;
  hears = [&](const wire::Header& h) {
    if (h.op() == Op::kData) sent.push_back(h.b_num);
    if (h.op() != Op::kRequestState) return;
    stored = sent.size() < 4 ? 1 : 3;  // Block 1 and what follows it arrives when repeated
    b_num_of_states = h.b_num;         // as if that were complete
    say_state(h, stored);
  };
  run(kSecond);
  EXPECT_EQ(sent, (std::vector<std::uint32_t>{0, 1, 2, 1}));
  for (Context i = 0; i < 3; ++i) EXPECT_EQ(ended[std::pair(Kind::kPut, i)].second, 0) << i;
}

// The RSR for its Block arrives late, and so does that for the RS after it.
// protocol: 9.36
TEST_F(LyingPeer, a_put_that_is_complete_is_asked_about_no_more) {
  open_region();
  std::vector<wire::Header> asked;
  hears = [&](const wire::Header& h) { asked.push_back(h); };
  ASSERT_EQ(sequencer.put(1, region, 0, {}, 100), 0);
  run(2 * kMillisecond);
  while (asked.size() < 2) run(10 * kMillisecond);
  say_state(asked[0], 1);
  say_state(asked[1], 1);
  left.clear();
  hears = [this](const wire::Header& h) { say_state(h, 1); };
  run(kHour);
  EXPECT_EQ(ended[std::pair(Kind::kPut, Context{1})].second, 0);
  EXPECT_EQ(left[Op::kRequestState] + left[Op::kData], 0U);
}

// protocol: 10.11
TEST_F(LyingPeer, a_get_that_is_answered_elsewhere) {
  open_region();
  ASSERT_EQ(sequencer.get(1, region, 0, kLanding), 0);
  expect_timeout(Kind::kGet, 1, kGet);
  EXPECT_LE(left[Op::kGet], most_repeats(kGet) + 1);
}

// protocol: 10.11
TEST_F(LyingPeer, a_fetch_op_that_is_answered_elsewhere) {
  open_region();
  ASSERT_EQ(sequencer.fetch(1, region, 0, wire::Function::kFetchAdd, 1, 0, kLanding), 0);
  expect_timeout(Kind::kFetch, 1, kGet);
  EXPECT_LE(left[Op::kGet], most_repeats(kGet) + 1);
}

// protocol: 9.18, 10.11
TEST_F(LyingPeer, an_end_that_is_never_confirmed) {
  open_region();
  ASSERT_EQ(sequencer.end_region(region), 0);
  run(kHour);
  EXPECT_LE(left[Op::kEnd], most_repeats(kEnd));
  ASSERT_EQ(sequencer.write(1, {}, 10'000), 0);
  run(kSecond);
  ASSERT_EQ(sequencer.cancel(1), 0);
  const auto begun = now;
  run(kHour);
  ASSERT_TRUE(ended.contains({Kind::kWrite, 1}));
  EXPECT_LE(ended[std::pair(Kind::kWrite, Context{1})].first - begun, kEnd);
}

// The requester ends a region that was granted, but whose id it does not know yet.
// protocol: 9.20
TEST_F(LyingPeer, a_region_that_is_ended_before_its_mra_arrives_is_open_no_more) {
  std::vector<wire::Header> heard;
  hears = [&](const wire::Header& h) { heard.push_back(h); };
  auto rmr = header(Op::kRequestMemoryRegion);
  rmr.param = 4;
  rmr.set_t_len(100);
  rmr.s_id = kTheirId;
  say(rmr);
  Completion asked{};
  ASSERT_TRUE(sequencer.next_completion(asked));
  ASSERT_EQ(sequencer.serve_region(asked.request, kLanding, 4), 0);
  run(kMillisecond);
  auto end = header(Op::kEnd);
  end.d_id = wire::kNoId;
  end.s_id = kTheirId;
  say(end);
  run(kMillisecond);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[1].op(), Op::kEndAck);
  EXPECT_EQ(heard[1].s_id, heard[0].s_id) << "by which its Node knows what ends";
  EXPECT_TRUE(ended.contains({Kind::kEnded, 0}));
}

// It gives no Slots, so the Node takes nothing.
// protocol: 9.18, 9.31
TEST_F(LyingPeer, one_that_opens_and_ends_regions_without_end_makes_no_answers_wait_without_end) {
  takes = false;
  for (std::uint32_t i = 1; i <= 20'000; ++i) {
    auto rmr = header(Op::kRequestMemoryRegion);
    rmr.param = 8;
    rmr.set_t_len(1'000);
    rmr.s_id = i;
    say(rmr);
    Completion c{};
    while (sequencer.next_completion(c))
      EXPECT_EQ(sequencer.serve_region(c.request, kLanding, 4, {}), 0);
    say_end(i);
  }
  work();
  EXPECT_LE(handed, 10'000U);
}

// The same, of requests to read.
TEST_F(LyingPeer, one_that_asks_to_read_and_takes_it_back_without_end_makes_nothing_wait_so) {
  takes = false;
  for (std::uint32_t i = 1; i <= 20'000; ++i) {
    auto rtr = header(Op::kRequestToReceive);
    rtr.set_t_len(1'000);
    rtr.s_id = i;
    say(rtr);
    Completion c{};
    while (sequencer.next_completion(c))
      if (c.kind == Kind::kReadRequest) {
        EXPECT_EQ(sequencer.serve_read(c.request, 7, {}, 1'000), 0);
      }
    say_end(i);
  }
  work();
  EXPECT_LE(handed, 10'000U);
}

// protocol: 9.31
TEST_F(LyingPeer, of_notices_for_a_peer_that_gives_no_slots_the_newest_one_waits) {
  for (std::uint32_t taken_slots = 8; taken_slots <= 8'000; taken_slots += 8)
    EXPECT_EQ(sequencer.notify(taken_slots), 0);
  SendEntry out;
  ASSERT_TRUE(sequencer.transmit(out, now));
  EXPECT_EQ(wire::decode_as<wire::NoOperation>(out.header).b_num, 8'000U);
  EXPECT_FALSE(sequencer.transmit(out, now));
  EXPECT_EQ(sequencer.notify(8'008), 0) << "the last one has left";
  EXPECT_TRUE(sequencer.transmit(out, now));
}

}  // namespace
}  // namespace stp::test::lying_peer_test
