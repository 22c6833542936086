// SPDX-License-Identifier: BSD-3-Clause
// Rules of docs/protocol.md, sections 8 to 10, that the managed layer obeys.
#include <set>

#include "stp/transfer/writes_in.h"
#include "tests/stp/transfer/managed_pair.h"

namespace stp::test {
namespace {

using Kind = Completion::Kind;
using wire::Op;
namespace flag = wire::flag;

class ManagedRules : public Managed {
 protected:
  std::vector<wire::Header> sent(Op op) const {
    std::vector<wire::Header> headers;
    for (const auto& frame : seen)
      if (const auto h = parsed(frame).header; h.op() == op) headers.push_back(h);
    return headers;
  }
  // Loses every frame of one operation.
  void lose(Op op) {
    wire = [=](const Frame& f, bool) { return parsed(f).header.op() == op ? 0U : 1U; };
  }
};

// protocol: 8.13, 9.1
TEST_F(ManagedRules, ids_count_up_and_are_not_used_again) {
  for (Context i = 0; i < 50; ++i) {
    ASSERT_EQ(sb.sequencer->post_receive(i, landing(sb, 0, 100)), 0);
    ASSERT_EQ(sa.sequencer->write(i, at(0), 100), 0);
    run(5 * kMillisecond);
    ASSERT_TRUE(sa.find(Kind::kWrite, i));
  }
  std::set<std::uint32_t> i_ids, r_ids;
  for (const auto& h : sent(Op::kRequestToSend)) i_ids.insert(h.s_id);
  for (const auto& h : sent(Op::kClearToSend)) r_ids.insert(h.s_id);
  EXPECT_EQ(i_ids.size(), 50U);
  EXPECT_EQ(r_ids.size(), 50U);
  EXPECT_FALSE(i_ids.contains(wire::kNoId) || r_ids.contains(wire::kNoId));
}

// protocol: 9.3, 9.4, 9.25
TEST_F(ManagedRules, grants_stay_within_what_the_offer_asks_for) {
  ASSERT_EQ(sb.sequencer->post_receive(1, landing(sb, 0, 1'000'000)), 0);
  ASSERT_EQ(sa.sequencer->write(1, at(0), 1'000'000), 0);
  unsigned open = 0, most = 0;
  wire = [&](const Frame& f, bool) {
    const auto h = parsed(f).header;
    if (h.op() == Op::kClearToSend) most = std::max(most, ++open);
    if (h.op() == Op::kData && h.has(flag::kLast)) --open;
    return 1U;
  };
  run(100 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kWrite, 1));
  const auto offer = sent(Op::kRequestToSend).front();
  EXPECT_LE(most, offer.param) << "CTS_req";
  EXPECT_GT(most, 1U);
  const auto grants = sent(Op::kClearToSend);
  std::uint32_t next = 0;
  for (const auto& cts : grants) {
    EXPECT_LE(cts.param, offer.mx) << "Max_Block";
    EXPECT_EQ(cts.param, grants.front().param) << "the first fixes it";
    EXPECT_EQ(cts.b_num, next++);
  }
}

// protocol: 9.7
TEST_F(ManagedRules, a_write_is_over_only_when_b_seq_says_that_all_has_arrived) {
  ASSERT_EQ(sb.sequencer->post_receive(1, landing(sb, 0, 10'000)), 0);
  lose(Op::kRequestStateResponse);
  ASSERT_EQ(sa.sequencer->write(1, at(0), 10'000), 0);
  run(500 * kMillisecond);
  EXPECT_TRUE(sb.find(Kind::kReceive, 1)) << "the bytes are there";
  EXPECT_FALSE(sa.find(Kind::kWrite, 1)) << "but nobody has said so";
  wire = nullptr;
  run(2 * kSecond);
  ASSERT_TRUE(sa.find(Kind::kWrite, 1));
  EXPECT_EQ(sa.find(Kind::kWrite, 1)->status, 0);
}

// protocol: 9.20, 9.22
TEST_F(ManagedRules, a_write_taken_back_before_it_was_heard_of_holds_up_no_other) {
  lose(Op::kRequestToSend);
  ASSERT_EQ(sa.sequencer->write(1, at(0), 100), 0);
  run(kMillisecond);
  ASSERT_EQ(sa.sequencer->cancel(1), 0);
  wire = nullptr;
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, 100)), 0);
  ASSERT_EQ(sa.sequencer->write(2, at(200), 100), 0);
  run(kSecond);
  const auto ends = sent(Op::kEnd);
  ASSERT_FALSE(ends.empty());
  EXPECT_EQ(ends.front().d_id, wire::kNoId) << "the other side's id was never learnt";
  ASSERT_TRUE(sb.find(Kind::kReceive, 7));
  EXPECT_EQ(sb.find(Kind::kReceive, 7)->status, 0);
  EXPECT_TRUE(landed(sa, sb, 200, 0, 100));
}

// protocol: 9.1
TEST_F(ManagedRules, a_region_with_the_id_of_another_is_not_used) {
  const auto region = open_region(1'000);
  ASSERT_EQ(sa.sequencer->request_region(901, 2'000, 4), 0);
  run(kMillisecond / 10);
  ReceivedEntry mra{};
  mra.header.op_flags = wire::op_flags(Op::kMemoryRegionAvailable);
  mra.header.param = 4;
  mra.header.mx = region.mx;
  mra.header.set_t_len(2'000);
  mra.header.d_id = sent(Op::kRequestMemoryRegion).back().s_id;
  mra.header.s_id = region.r_id;
  sa.sequencer->receive(mra, now);
  run(kMillisecond / 10);
  ASSERT_TRUE(sa.find(Kind::kRegion, 901));
  EXPECT_EQ(sa.find(Kind::kRegion, 901)->status, -ECONNREFUSED);
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 1'000), 0);
  run(10 * kMillisecond);
  EXPECT_TRUE(landed(sa, sb, 0, 0, 1'000)) << "the first one still stands";
}

// protocol: 9.27
TEST_F(ManagedRules, puts_are_silent_unless_they_wake_and_ask_for_state) {
  const auto region = open_region(10'000);
  const auto slots_used = seen.size();
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 5'000), 0);
  ASSERT_EQ(sa.sequencer->put(2, region, 5'000, at(0), 100, {.flags = flag::kInterrupt}), 0);
  run(10 * kMillisecond);
  ASSERT_GT(seen.size(), slots_used);
  ASSERT_TRUE(sa.find(Kind::kPut, 1) && sa.find(Kind::kPut, 2));
  for (const auto& h : sent(Op::kData)) {
    EXPECT_EQ(h.has(flag::kSilent), h.b_num == 0);
    EXPECT_EQ(h.has(flag::kSendState), h.has(flag::kLast));
  }
}

// protocol: 9.27, 10.6
TEST_F(ManagedRules, a_put_that_no_answer_confirms_is_sent_again) {
  const auto region = open_region(10'000);
  wire = [lost = 0](const Frame& f, bool) mutable {
    return parsed(f).header.op() == Op::kData && lost++ < 1 ? 0U : 1U;
  };
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 100), 0);
  run(kSecond);
  ASSERT_TRUE(sa.find(Kind::kPut, 1));
  EXPECT_EQ(sa.find(Kind::kPut, 1)->status, 0);
  EXPECT_TRUE(landed(sa, sb, 0, 0, 100));
  EXPECT_FALSE(sent(Op::kRequestState).empty());
}

// protocol: 9.12, 9.17
TEST_F(ManagedRules, a_refusal_refuses_only_the_get_that_it_names) {
  const auto region = open_region(10'000);
  lose(Op::kGet);
  ASSERT_EQ(sa.sequencer->get(1, region, 0, landing(sa, 0, 64)), 0);
  run(kMillisecond / 10);
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  const auto as_b_says = [&](wire::Header h) {
    h.d_port = info.local_port;
    h.s_port = info.remote_port;
    h.d_key = info.local_key;
    return h;
  };
  const auto asked = sent(Op::kGet).front();
  auto no = as_b_says(asked);
  no.op_flags |= flag::kReject;
  ++no.d_id;
  inject(a, kMacB, no);
  run(kMillisecond / 10);
  EXPECT_FALSE(sa.find(Kind::kGet, 1)) << "its answer could still be placed";

  --no.d_id;
  inject(a, kMacB, no);
  run(kMillisecond / 10);
  ASSERT_TRUE(sa.find(Kind::kGet, 1));
  EXPECT_EQ(sa.find(Kind::kGet, 1)->status, -ECONNREFUSED);
  auto late = as_b_says(asked);
  late.op_flags = wire::op_flags(Op::kData, flag::kLast);
  late.param = 0;
  late.bufx = asked.sync;
  late.offset = asked.b_num;
  late.b_num = asked.s_id;
  inject(a, kMacB, late, Bytes(sb.source->data() + 1, 64));
  EXPECT_EQ(a.count(Counter::kNoGrant), 1U);
  EXPECT_EQ(sa.landing->data()[0], std::byte{0}) << "the landing is its user's again";
}

// The ids of a Get's answer are chosen by the peer: a Transfer of this side may have the same.
// protocol: 9.12, 9.19
TEST_F(ManagedRules, the_late_answer_of_a_get_is_no_block_of_a_write) {
  ASSERT_EQ(sb.sequencer->post_receive(1, landing(sb, 0, 100)), 0);
  lose(Op::kData);
  ASSERT_EQ(sa.sequencer->write(1, at(0), 100), 0);
  run(kMillisecond / 10);
  const auto cts = sent(Op::kClearToSend).front();
  ReceivedEntry answer{};
  answer.header.op_flags = wire::op_flags(Op::kData, flag::kLast);
  answer.header.mx = cts.mx;
  answer.header.bufx = cts.bufx + 1;
  answer.header.offset = cts.offset;
  answer.header.b_num = cts.b_num;
  answer.header.d_id = cts.s_id;
  sb.sequencer->receive(answer, now);
  run(kMillisecond / 10);
  EXPECT_FALSE(sb.find(Kind::kReceive, 1));
  wire = nullptr;
  run(kSecond);
  ASSERT_TRUE(sb.find(Kind::kReceive, 1));
  EXPECT_TRUE(landed(sa, sb, 0, 0, 100));
}

// protocol: 10.10
TEST(LossEstimateRules, the_more_is_lost_the_shorter_are_blocks) {
  EXPECT_EQ(LossEstimate{}.block_stus_log2(13), 3U) << "nothing is known yet";
  EXPECT_EQ(LossEstimate{}.block_stus_log2(10), 6U) << "64 KiB";
  LossEstimate none;
  for (int i = 0; i < 100; ++i) none.observe(256, 0);
  EXPECT_EQ(none.block_stus_log2(13), 15U);
  LossEstimate one_percent;
  std::uint32_t repeats = 0;
  for (int i = 0; i < 1'000; ++i) one_percent.observe(100, ++repeats);
  const auto stus = 1U << one_percent.block_stus_log2(13);
  const auto cost = [&](unsigned of) { return 0.5 / of + one_percent.rate() * of / 2; };
  EXPECT_LE(cost(stus), cost(stus / 2));
  EXPECT_LE(cost(stus), cost(2 * stus));
}

// protocol: 10.11
TEST_F(ManagedRules, what_makes_no_progress_is_given_up_and_the_other_side_is_told) {
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, 100'000)), 0);
  ASSERT_EQ(sa.sequencer->request_region(2, 1'000, 1), 0);  // which B's user leaves unanswered
  lose(Op::kData);
  ASSERT_EQ(sa.sequencer->write(1, at(0), 100'000), 0);
  run(29 * kSecond);
  EXPECT_FALSE(sa.find(Kind::kRegion, 2));
  run(3 * kSecond);
  ASSERT_TRUE(sa.find(Kind::kRegion, 2));
  EXPECT_EQ(sa.find(Kind::kRegion, 2)->status, -ETIMEDOUT);
  run(8 * kSecond);
  ASSERT_TRUE(sa.find(Kind::kWrite, 1));
  EXPECT_NE(sa.find(Kind::kWrite, 1)->status, 0);
  ASSERT_TRUE(sb.find(Kind::kReceive, 7));
  EXPECT_NE(sb.find(Kind::kReceive, 7)->status, 0);
  EXPECT_FALSE(sent(Op::kEnd).empty());
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
}

}  // namespace
}  // namespace stp::test
