// SPDX-License-Identifier: BSD-3-Clause
// A peer that answers everything but does nothing: every operation of the managed layer must still
// end in time, with few frames. There is no Node: the peer's headers are delivered directly, and
// time is simulated.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>

#include "stp/channel/doubt.h"
#include "stp/transfer/sequencer.h"

namespace stp::test {
namespace {

using Kind = Completion::Kind;
using wire::Op;
namespace flag = wire::flag;

constexpr Time kHour = 3600 * kSecond;
// The limits of docs/managed.md. For some operations the time of END is added.
constexpr Time kGet = 11 * kSecond, kWait = 31 * kSecond, kEnd = 11 * kSecond;
// Intervals double from a millisecond up to a second.
constexpr unsigned most_repeats(Time span) {
  return 12 + static_cast<unsigned>(span / kSecond);
}

constexpr std::uint32_t kTheirId = 500, kSlots = 100;
constexpr Landing kLanding{3, {7, 0}, 50'000};

class LyingPeer : public ::testing::Test {
 protected:
  Sequencer sequencer{SequencerConfig{.max_block = 13, .remote_slots = kSlots}};
  Time now = kSecond;
  std::function<void(const wire::Header&)> hears = [this](const wire::Header& h) { answer(h); };
  std::map<Op, unsigned> left;  // requests by operation
  std::map<std::pair<Kind, Context>, std::pair<Time, int>> ended;
  std::uint32_t b_num_of_states = wire::kNoId;
  bool echoes_b_num = false;
  bool takes = true;  // whether the Node takes requests

  static wire::Header header(Op op, std::uint16_t flags = 0) {
    wire::Header h;
    h.op_flags = wire::op_flags(op, flags);
    return h;
  }
  void say(const wire::Header& h) {
    ReceivedEntry entry{};
    entry.header = h;
    sequencer.receive(entry, now);
  }
  void say_state(const wire::Header& to, std::uint32_t b_seq) {
    auto h = header(Op::kRequestStateResponse);
    h.param = kSlots;
    h.offset = b_seq;
    h.sync = to.sync;
    h.b_num = echoes_b_num ? to.b_num : b_num_of_states;
    h.d_id = our_id;
    h.s_id = kTheirId;
    say(h);
  }
  void grant(const wire::Header& rts, std::uint32_t b_num = 0) {
    auto h = header(Op::kClearToSend);
    h.param = 12;
    h.mx = 1;
    h.b_num = b_num;
    h.d_id = rts.s_id;
    h.s_id = kTheirId;
    say(h);
  }
  void see(const wire::Header& request) {
    auto h = header(Op::kRequestAnswer);
    h.d_id = request.s_id;
    h.s_id = kTheirId;
    say(h);
  }
  void open(const wire::Header& rmr) {
    auto h = header(Op::kMemoryRegionAvailable);
    h.param = 4;
    h.mx = 1;
    h.set_t_len(1 << 20);
    h.d_id = our_id = rmr.s_id;
    h.s_id = kTheirId;
    say(h);
  }
  void offer(std::uint32_t answers = wire::kNoId) {
    auto h = header(Op::kRequestToSend);
    h.param = 2;
    h.mx = 12;
    h.set_t_len(kLanding.length);
    h.d_id = answers;
    h.s_id = kTheirId;
    say(h);
  }
  // Answers everything and stores nothing.
  void answer(const wire::Header& h) {
    switch (h.op()) {
      case Op::kRequestToSend:
        our_id = h.s_id;
        return grant(h);
      case Op::kRequestToReceive:
        return see(h);
      case Op::kRequestMemoryRegion:
        return open(h);
      case Op::kData:
        if (h.has(flag::kSendState) && answers_data) say_state(h, 0);
        return;
      case Op::kRequestState:
        return say_state(h, 0);
      case Op::kGet: {  // DATA of the right name at another place; a refusal of another region
        auto data = header(Op::kData, flag::kLast);
        data.mx = h.mx;
        data.bufx = h.sync + 1;
        data.b_num = h.s_id;
        data.d_id = h.d_id;
        say(data);
        auto no = h;
        no.op_flags |= flag::kReject;
        ++no.d_id;
        return say(no);
      }
      case Op::kEnd: {  // EA of something else
        auto ack = header(Op::kEndAck);
        ack.d_id = h.s_id + 1000;
        ack.s_id = h.d_id;
        return say(ack);
      }
      default:
        return;
    }
  }
  void work() {
    for (bool moved = true; moved;) {
      moved = false;
      SendEntry out;
      while (sequencer.transmit(out, now)) {
        moved = true;
        ++handed;
        ++left[out.header.op()];
        if (!takes) continue;
        sequencer.taken(++taken);
        if (hears) hears(out.header);
      }
      Completion c{};
      while (sequencer.next_completion(c)) {
        ended[{c.kind, c.context}] = {now, c.status};
        if (c.kind == Kind::kRegion && c.status == 0) region = c.region;
      }
    }
  }
  void run(Time span) {
    const auto end = now + span;
    sequencer.expire(now);
    for (work(); sequencer.next_deadline() <= end; work()) {
      now = std::max(now, sequencer.next_deadline());
      sequencer.expire(now);
    }
    now = end;
  }
  // Expects that the operation ends with a timeout within `bound`.
  void expect_timeout(Kind kind, Context context, Time bound) {
    const auto begun = now;
    run(bound + kHour);
    ASSERT_TRUE(ended.contains({kind, context}));
    const auto [when, status] = ended[{kind, context}];
    EXPECT_EQ(status, -ETIMEDOUT);
    EXPECT_LE(when - begun, bound);
  }
  void open_region() {
    ASSERT_EQ(sequencer.request_region(900, 1 << 20, 4), 0);
    run(kMillisecond);
    ASSERT_EQ(region.r_id, kTheirId);
    left.clear();
  }

  std::uint32_t our_id = 0, taken = 0, handed = 0;
  bool answers_data = true;
  RemoteRegion region;
};

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
    auto data = header(Op::kData, flag::kLast);
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
}  // namespace stp::test
