// SPDX-License-Identifier: BSD-3-Clause
// Data from one user's memory into the other's, Block by Block (protocol, sections 8 and 9).
#include "stp/wire/tiling.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;
namespace flag = wire::flag;

class Write : public Writing {};

// protocol: 7.7, 8.8, 8.9
TEST_F(Write, a_block_lands_where_the_receiver_said_and_its_header_is_delivered_once) {
  const auto permission = grant(10'000);
  put(a, ca, data(permission, 10'000));
  settle();
  EXPECT_TRUE(arrived(10'000));
  EXPECT_TRUE(untouched(10'000));
  const auto header = get(cb);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header.op(), Op::kData);
  EXPECT_TRUE(header->header.has(flag::kLast));
  EXPECT_EQ(header->header.bufx, kTargetBufx);
  EXPECT_EQ(header->header.offset, 0U);
  EXPECT_EQ(header->header.b_num, 0U);
  EXPECT_EQ(header->header.s_id, 0xbeefU);
  EXPECT_FALSE(get(cb));
  EXPECT_TRUE(ca.user.done(ca.user.sent()));
}

// protocol: 7.1, 8.2
TEST_F(Write, an_unaligned_block_from_an_unaligned_source_crosses_buffers_on_both_sides) {
  put(a, ca, rts(9'000));
  settle();
  put(b, cb, cts(0, kTargetBufx + 1, 1000));
  settle();
  auto e = data(get(ca)->header, 9'000);
  e.bufx = kSourceBufx + 2;
  e.offset = 333;
  put(a, ca, e);
  settle();
  EXPECT_EQ(0, std::memcmp(target.data() + 4096 + 1000, source.data() + 2 * 4096 + 333, 9'000));
  get(cb);
  const auto header = get(cb);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header.bufx, kTargetBufx + 1);
  EXPECT_EQ(header->header.offset, 1000U);
}

// protocol: 8.5, 8.8, 8.10
TEST_F(Write, stus_may_arrive_in_any_order_and_twice) {
  const auto permission = grant(20'000);
  put(a, ca, data(permission, 20'000));
  std::vector<Frame> held;
  while (auto f = take(a)) held.push_back(*f);
  ASSERT_EQ(held.size(), 5U);
  for (auto i : {4, 2, 2, 0, 3}) arrive(b, held[static_cast<std::size_t>(i)]);
  EXPECT_FALSE(get(cb)) << "STU 1 is missing";
  arrive(b, held[1]);
  EXPECT_TRUE(arrived(20'000));
  EXPECT_TRUE(get(cb));
  EXPECT_EQ(b.count(Counter::kDuplicateStu), 1U);
}

// protocol: 8.9, 8.12, 9.5
TEST_F(Write, a_repeated_cts_lets_the_sender_repeat_a_lost_tail) {
  const auto permission = grant(20'000);
  wire = [](const Frame& f, bool) {
    const auto h = parsed(f).header;
    return h.op() == Op::kData && h.param >= 3 ? 0U : 1U;
  };
  put(a, ca, data(permission, 20'000));
  settle();
  wire = nullptr;
  EXPECT_FALSE(get(cb));
  auto again = cts();
  again.header.sync = 3 * 4096;  // F_Offset: the first byte still missing
  put(b, cb, again);
  settle();
  auto tail = data(get(ca)->header, 20'000 - 3 * 4096);
  tail.header.param = 14;  // ignored: libst knows the number from the CTS
  tail.header.bufx += 3;
  tail.header.sync = 1;
  tail.bufx += 3;
  put(a, ca, tail);
  settle();
  EXPECT_TRUE(arrived(20'000));
  const auto header = get(cb);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header.bufx, kTargetBufx) << "the Block's first buffer, not the tail's";
}

// protocol: 8.4
TEST_F(Write, an_empty_block_is_one_empty_stu) {
  const auto permission = grant(0);
  put(a, ca, data(permission, 0));
  settle();
  EXPECT_TRUE(get(cb));
  EXPECT_TRUE(untouched());
}

TEST_F(Write, short_blocks_keep_their_length) {
  std::uint32_t offset = 0;
  for (std::uint32_t length = 1; length < 12; ++length) {
    auto request = rts(length);
    request.header.s_id = 100 + length;
    put(a, ca, request);
    settle();
    get(cb);
    auto permission = cts(0, kTargetBufx, offset, 8);
    permission.header.d_id = 100 + length;
    permission.header.s_id = 200 + length;
    put(b, cb, permission);
    settle();
    put(a, ca, data(get(ca)->header, length));
    settle();
    ASSERT_TRUE(get(cb)) << length;
    EXPECT_TRUE(arrived(length, offset)) << length;
    EXPECT_TRUE(untouched(offset + length)) << length;
    offset += 256;
  }
}

// protocol: 6.13, 6.15, 9.6
TEST_F(Write, send_state_answers_with_the_first_block_not_complete) {
  put(a, ca, rts(3 * 65'536));
  settle();
  get(cb);
  for (std::uint32_t b_num : {0U, 1U}) put(b, cb, cts(b_num, kTargetBufx + 16 * b_num));
  settle();
  const auto first = get(ca)->header, second = get(ca)->header;
  put(a, ca, data(second, 65'536, flag::kSendState));
  settle();
  auto answer = get(ca);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.op(), Op::kRequestStateResponse);
  EXPECT_EQ(answer->header.offset, 0U) << "Block 0 is missing";
  EXPECT_EQ(answer->header.d_id, kIId);
  put(a, ca, data(first, 65'536, flag::kSendState));
  settle();
  answer = get(ca);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.offset, 2U);
}

TEST_F(Write, the_same_ids_serve_a_second_transfer_once_a_new_request_came) {
  for (int round = 0; round < 3; ++round) {
    std::memset(target.data(), 0, target.size());
    put(a, ca, data(grant(6'000), 6'000));
    settle();
    ASSERT_TRUE(get(cb)) << round;
    EXPECT_TRUE(arrived(6'000)) << round;
  }
}

// protocol: 7.12, 9.18
TEST_F(Write, end_voids_the_grant) {
  const auto permission = grant(4'096);
  auto end = control(Op::kEnd);
  end.header.d_id = kRId;
  end.header.s_id = kIId;
  put(a, ca, end);
  settle();
  EXPECT_EQ(get(cb)->header.op(), Op::kEnd);
  put(a, ca, data(permission, 4'096));
  settle();
  EXPECT_TRUE(untouched());
  EXPECT_EQ(b.count(Counter::kNoGrant), 1U);
}

// protocol: 7.13, 9.10, 9.11
TEST_F(Write, put_blocks_land_anywhere_in_a_region_that_mra_opened) {
  auto mra = control(Op::kMemoryRegionAvailable);
  mra.header.param = 4;
  mra.header.mx = mx;
  mra.header.bufx = kTargetBufx;
  mra.header.set_t_len(65'536);
  mra.header.d_id = 21;
  mra.header.s_id = 22;
  put(b, cb, mra);
  settle();
  auto region = get(ca)->header;
  region.b_num = 0;
  for (std::uint32_t b_num = 0; b_num < 10; ++b_num) {
    auto e = data(region, 5'000);
    e.header.b_num = b_num;
    e.header.offset = 100 * b_num;
    put(a, ca, e);
    settle();
    ASSERT_TRUE(get(cb)) << b_num;
    EXPECT_TRUE(arrived(5'000, 100 * b_num));
  }
  auto stale = data(region, 5'000);
  stale.header.b_num = 3;
  put(a, ca, stale);
  auto ahead = data(region, 5'000);
  ahead.header.b_num = 14;
  put(a, ca, ahead);
  settle();
  EXPECT_FALSE(get(cb));
  EXPECT_GE(b.count(Counter::kDuplicateBlock), 1U);
  EXPECT_GE(b.count(Counter::kBadBNum), 1U);
}

// protocol: 7.5
TEST_F(Write, memory_attached_to_frames_is_released_when_the_link_lets_go) {
  const auto permission = grant(8'192);
  put(a, ca, data(permission, 8'192));
  std::vector<std::byte> head(a.node.frame_room());
  TxFrame frame{.head = head.data(), .attached = {}, .token = {}};
  ASSERT_EQ(a.node.transmit({&frame, 1}, now), 1U);
  ASSERT_EQ(frame.attached.data(), source.data()) << "the user's own memory, not a copy";
  TxFrame second{.head = head.data(), .attached = {}, .token = {}};
  ASSERT_EQ(a.node.transmit({&second, 1}, now), 1U);
  EXPECT_FALSE(ca.user.done(ca.user.sent()));
  ASSERT_EQ(a.node.unmap(source_region), 0);
  EXPECT_FALSE(has_event(a, Event::Kind::kRegionGone));
  a.node.transmitted(frame.token);
  EXPECT_FALSE(ca.user.done(ca.user.sent()));
  a.node.transmitted(second.token);
  EXPECT_TRUE(ca.user.done(ca.user.sent()));
  settle();
  EXPECT_TRUE(has_event(a, Event::Kind::kRegionGone));
}

// protocol: 8.2, 8.3
TEST_F(Write, stus_that_leave_in_one_call_are_numbered_and_placed_as_those_that_leave_one_by_one) {
  put(a, ca, rts(6 * kStu));
  settle();
  get(cb);
  put(b, cb, cts(0, kTargetBufx + 1, 1'000));
  settle();
  put(a, ca, data(get(ca)->header, 6 * kStu, flag::kSendState));
  constexpr std::size_t kMost = 16;
  std::vector<std::vector<std::byte>> heads(kMost, std::vector<std::byte>(a.node.frame_room()));
  std::vector<TxFrame> frames(kMost);
  for (std::size_t i = 0; i < kMost; ++i) frames[i].head = heads[i].data();
  // The second STU and all before the last one are alike; the third call begins in the middle.
  std::size_t count = a.node.transmit({frames.data(), 3}, now);
  ASSERT_EQ(count, 3U);
  count += a.node.transmit({&frames[3], 1}, now);
  count += a.node.transmit({&frames[4], kMost - 4}, now);
  ASSERT_EQ(count, 7U);
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TxFrame& frame = frames[i];
    ASSERT_FALSE(frame.attached.empty());
    EXPECT_EQ(frame.attached.data(), source.data() + from) << i;
    EXPECT_EQ(frame.token.region, source_region) << i;
    const auto h = wire::decode(frame.head + wire::kEthernetSize);
    EXPECT_EQ(h.param, i);
    EXPECT_EQ(h.has(flag::kLast), i == count - 1) << i;
    EXPECT_EQ(h.has(flag::kSendState), i == count - 1) << i;
    EXPECT_EQ((Address{h.bufx, h.offset}.linear(kBufsize)),
              (Address{kTargetBufx + 1, 1'000}.linear(kBufsize)) + from);
    const LoopedFrame apart{.head = {frame.head, frame.head_length}, .attached = frame.attached};
    b.node.receive_apart({&apart, 1}, now);
    from += frame.attached.size();
    EXPECT_FALSE(ca.user.done(ca.user.sent()));
  }
  EXPECT_EQ(a.count(Counter::kTxStus), count);
  EXPECT_EQ(a.count(Counter::kTxDataBytes), 6 * kStu);
  a.node.transmitted(frames[0].token, static_cast<std::uint32_t>(count));
  EXPECT_TRUE(ca.user.done(ca.user.sent()));
  EXPECT_TRUE(get(cb)->header.has(flag::kLast));
  EXPECT_EQ(0, std::memcmp(target.data() + kStu + 1'000, source.data(), 6 * kStu));
}

// protocol: 7.5
TEST_F(Write, several_frames_with_one_token_are_let_go_at_once_but_not_more_than_there_are) {
  const auto permission = grant(8'192);
  put(a, ca, data(permission, 8'192));
  std::vector<std::byte> head(a.node.frame_room());
  TxFrame frame{.head = head.data(), .attached = {}, .token = {}};
  std::size_t frames = 0;
  while (a.node.transmit({&frame, 1}, now) != 0) ++frames;
  ASSERT_EQ(frames, 2U);
  ASSERT_EQ(a.node.unmap(source_region), 0);
  a.node.transmitted(frame.token, 3);
  EXPECT_FALSE(ca.user.done(ca.user.sent()));
  EXPECT_FALSE(has_event(a, Event::Kind::kRegionGone));
  a.node.transmitted(frame.token, 2);
  EXPECT_TRUE(ca.user.done(ca.user.sent()));
  settle();
  EXPECT_TRUE(has_event(a, Event::Kind::kRegionGone));
}

TEST_F(Write, a_connection_is_gone_for_its_user_only_when_no_frame_reads_its_memory) {
  const auto permission = grant(8'192);
  put(a, ca, data(permission, 8'192));
  std::vector<std::byte> head(a.node.frame_room());
  TxFrame frame{.head = head.data(), .attached = {}, .token = {}};
  ASSERT_EQ(a.node.transmit({&frame, 1}, now), 1U);
  ASSERT_FALSE(frame.attached.empty());
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  settle();
  ASSERT_EQ(a.node.vc_count(), 0U);
  EXPECT_FALSE(has_event(a, Event::Kind::kVcGone));
  EXPECT_FALSE(ca.user.done(ca.user.sent()));
  EXPECT_NE(ca.user.state(), ChannelState::kClosed);
  a.node.transmitted(frame.token);
  EXPECT_TRUE(ca.user.done(ca.user.sent()));
  EXPECT_EQ(ca.user.state(), ChannelState::kClosed);
  settle();
  EXPECT_TRUE(has_event(a, Event::Kind::kVcGone));
}

// A withdraws its Write before it has learnt R_id, and B's user has not seen that yet.
// protocol: 7.12, 9.20
TEST_F(Write, an_end_that_does_not_know_the_id_ends_the_grant_at_once) {
  put(a, ca, rts(10'000));
  settle();
  put(b, cb, cts());
  settle();
  const auto permission = *get(ca);
  auto end = control(Op::kEnd);
  end.header.d_id = wire::kNoId;
  end.header.s_id = kIId;
  put(a, ca, end);
  settle();
  expect_dropped(stu(permission.header, 0, 0), Counter::kNoGrant);
}

// protocol: 7.12, 9.20
TEST_F(Write, an_end_that_does_not_know_the_id_ends_nothing_else) {
  const auto permission = grant(10'000);
  auto end = control(Op::kEnd);
  end.header.d_id = wire::kNoId;
  end.header.s_id = kIId + 1;
  put(a, ca, end);
  put(a, ca, data(permission, 10'000));
  settle();
  EXPECT_TRUE(arrived(10'000));
}

class EndsCross : public Writing {
 protected:
  // A's queue takes two headers.
  void SetUp() override { start({.slots = 2}); }
  // B's user can send nothing more.
  void use_up_slots() {
    for (int i = 0; i < 3; ++i) put(b, cb, control(Op::kNoOperation));
    settle();
  }
  void end_of_a(std::uint32_t d_id) {
    auto end = control(Op::kEnd);
    end.header.d_id = d_id;
    end.header.s_id = kIId;
    put(a, ca, end);
    settle();
  }
  SendEntry end_of_b(Op op) {
    auto end = control(op);
    end.header.d_id = kIId;
    end.header.s_id = kRId;
    return end;
  }
};

// B has revoked its grant, but its END waits for a Slot when A's END arrives.
// protocol: 7.12, 9.18
TEST_F(EndsCross, an_end_ends_a_grant_whose_own_side_is_about_to_end_it) {
  const auto permission = grant(10'000);
  use_up_slots();
  put(b, cb, end_of_b(Op::kEnd));
  settle();
  EXPECT_EQ(a.count(Counter::kRxControl), b.count(Counter::kTxControl)) << "nothing is lost";
  end_of_a(kRId);
  inject_stu(stu(permission, 0, 0), 0, kStu);
  EXPECT_EQ(b.count(Counter::kNoGrant), 1U);
  EXPECT_TRUE(untouched());
}

// B's CTS has not left yet when A's END arrives: it must not open a grant until B's user has seen
// the END. protocol: 7.12, 9.20
TEST_F(EndsCross, a_cts_that_waits_behind_an_end_grants_nothing) {
  for (const auto d_id : {wire::kNoId, kRId}) {
    put(a, ca, rts(10'000));
    settle();
    use_up_slots();
    put(b, cb, cts());
    end_of_a(d_id);
    while (get(ca)) {
    }
    pass(kSecond);
    while (const auto got = get(ca)) EXPECT_NE(got->header.op(), Op::kClearToSend);
    auto permission = cts().header;
    inject_stu(stu(permission, 0, 0), 0, kStu);
    EXPECT_TRUE(untouched());
    put(b, cb, end_of_b(Op::kEndAck));
    settle();
    while (get(ca) || get(cb)) {
    }
    pass(kSecond);
  }
  EXPECT_EQ(b.count(Counter::kNoGrant), 2U);
  const auto permission = grant(10'000);  // the ids are free again
  put(a, ca, data(permission, 10'000));
  settle();
  EXPECT_TRUE(arrived(10'000));
}

// protocol: 5.17
TEST_F(Write, closing_sends_what_is_queued_first) {
  const auto permission = grant(60'000);
  put(a, ca, data(permission, 60'000));
  ASSERT_EQ(a.node.close(ca.id, false, now), 0);
  settle();
  EXPECT_TRUE(arrived(60'000));
  EXPECT_TRUE(get(cb));
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
}

class WriteChecksummed : public Writing {
 protected:
  void SetUp() override { start({.checksum = true}); }
};

// protocol: 4.3
TEST_F(WriteChecksummed, a_corrupted_stu_writes_nothing) {
  const auto permission = grant(4'096);
  wire = [this](const Frame& f, bool) {
    if (parsed(f).header.op() != Op::kData) return 1U;
    auto bad = f;
    bad[200] ^= std::byte{0x10};
    arrive(b, bad);
    return 0U;
  };
  put(a, ca, data(permission, 4'096));
  settle();
  EXPECT_TRUE(untouched());
  EXPECT_EQ(b.count(Counter::kBadChecksum), 1U);
  wire = nullptr;
  put(a, ca, data(permission, 4'096));
  settle();
  EXPECT_TRUE(arrived(4'096));
}

}  // namespace
}  // namespace stp::test
