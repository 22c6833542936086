// SPDX-License-Identifier: BSD-3-Clause
// Rules of docs/protocol.md, section 11: endpoints without a peer.
#include <cerrno>

#include "stp/node/inbound/unscheduled.h"
#include "tests/stp/node/endpoints_fixture.h"

namespace stp::test {
namespace {

using wire::Op;
namespace flag = wire::flag;

class ConnectionlessRules : public Endpoints {};

// protocol: 11.1, 11.5
TEST_F(ConnectionlessRules, who_knows_mac_port_and_key_reaches_the_queue_and_is_named_there) {
  send(to_b(Op::kNoOperation));
  auto nop = control(Op::kNoOperation).header;
  nop.d_port = pb.name.local_port;
  nop.d_key = pb.name.local_key;
  nop.s_port = 77;
  inject(b, kStranger, nop);
  const auto first = get(pb.port), second = get(pb.port);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->source_mac, kMacA.to_u64());
  EXPECT_EQ(first->header.s_port, pa.name.local_port) << "set by the Node, not by the user";
  EXPECT_EQ(second->source_mac, kStranger.to_u64());
  EXPECT_EQ(second->header.s_port, 77);
}

// protocol: 11.1
TEST_F(ConnectionlessRules, ports_and_keys_are_an_endpoints_own) {
  EXPECT_NE(pb.name.local_port, 0);
  EXPECT_NE(pb.name.local_key, 0U);
  EXPECT_EQ(b.node.open_port(pb.endpoint, pb.port.memory->data(), 6, pb.port.id, now), -EBUSY);
  Party other;
  const auto taken = b.open({.connectionless = true, .port = pb.name.local_port});
  ChannelMemory memory({64, 64});
  EXPECT_EQ(b.node.open_port(taken, memory.data(), 6, other.port.id, now), -EADDRINUSE);
  const auto connected = b.open();
  EXPECT_EQ(b.node.open_port(connected, memory.data(), 6, other.port.id, now), -EINVAL);
}

// protocol: 11.2
TEST_F(ConnectionlessRules, a_wrong_key_or_port_reaches_nothing) {
  auto wrong = to_b(Op::kNoOperation);
  wrong.header.d_key ^= 1;
  send(wrong);
  EXPECT_EQ(b.count(Counter::kBadKey), 1U);
  wrong = to_b(Op::kNoOperation);
  wrong.header.d_port += 100;
  send(wrong);
  EXPECT_EQ(b.count(Counter::kBadPort), 1U);
  EXPECT_FALSE(get(pb.port));
}

// protocol: 11.2, 11.6
TEST_F(ConnectionlessRules, every_check_of_memory_stands_before_the_copy) {
  struct Case {
    const char* what;
    Counter counted;
    void (*spoil)(wire::Header&);
  };
  constexpr Case kCases[] = {
      {"an Mx that does not live", Counter::kBadMx, [](auto& h) { h.mx = 999; }},
      {"a Bufx before it", Counter::kBadBufx, [](auto& h) { h.bufx = kTargetBufx - 1; }},
      {"a Bufx behind it", Counter::kBadBufx, [](auto& h) { h.bufx = kTargetBufx + kBuffers; }},
      {"an Offset beyond the buffer", Counter::kBadOffset, [](auto& h) { h.offset = 4'096; }},
      {"the end of the buffer", Counter::kStuCrossesBuffer, [](auto& h) { h.offset = 4'000; }},
      {"a middle without its begin", Counter::kBadStuNum,
       [](auto& h) {
         h.param = 9;
         h.offset = 8;
       }},
  };
  for (const auto& c : kCases) {
    const auto before = b.count(c.counted);
    auto h = stu(1, 0, 0, flag::kLast);
    c.spoil(h);
    inject_stu(h, 0, 128);
    EXPECT_EQ(b.count(c.counted), before + 1) << c.what;
  }
  std::uint16_t read_only = 0;
  ASSERT_EQ(b.node.alloc_mx(pb.target_region, kNoneId, permit::kGet, read_only), 0);
  auto h = stu(1, 0, 0, flag::kLast);
  h.mx = read_only;
  inject_stu(h, 0, 128);
  EXPECT_EQ(b.count(Counter::kNoPermission), 1U);
  EXPECT_TRUE(untouched());
  EXPECT_FALSE(get(pb.port));
}

// protocol: 11.2
TEST_F(ConnectionlessRules, the_mx_of_another_endpoint_is_not_reached) {
  Party other;
  open(b, other, {.connectionless = true, .bufsize = kBufsize});
  auto h = stu(1, 0, 0, flag::kLast);
  h.mx = other.mx;
  inject_stu(h, 0, 128);
  EXPECT_EQ(b.count(Counter::kMxNotOwned), 1U);
}

// protocol: 11.6
TEST_F(ConnectionlessRules, data_needs_no_grant_and_its_header_is_delivered_once) {
  auto entry = data(1, 10'000, 100);
  entry.payload_length = wire::kAppendSize;
  std::memset(entry.payload, 0x5a, sizeof entry.payload);
  send(entry);
  EXPECT_TRUE(arrived(10'000, 100));
  EXPECT_TRUE(untouched(10'100));
  const auto got = get(pb.port);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->header.op(), Op::kData);
  EXPECT_EQ(got->header.bufx, kTargetBufx) << "of the Block's first byte";
  EXPECT_EQ(got->header.offset, 100U);
  EXPECT_EQ(got->header.s_id, 0xbeefU);
  EXPECT_EQ(got->payload_length, wire::kAppendSize);
  EXPECT_EQ(got->payload[63], 0x5a);
  EXPECT_EQ(got->source_mac, kMacA.to_u64());
  EXPECT_FALSE(get(pb.port));
}

// protocol: 11.3
TEST_F(ConnectionlessRules, unfinished_blocks_are_bounded_and_give_way_when_they_stand_still) {
  std::uint32_t b_num = 0;
  for (; b_num < 4'000; ++b_num) inject_stu(stu(b_num, 0, 0), 0, 4'096);
  const auto open = b_num - b.count(Counter::kBlocksFull);
  EXPECT_GT(open, UnscheduledBlocks::kMaxOpen / 2);
  EXPECT_LE(open, UnscheduledBlocks::kMaxOpen);
  EXPECT_EQ(b.count(Counter::kBlocksAbandoned), 0U);
  now += UnscheduledBlocks::kPatience;
  const auto full = b.count(Counter::kBlocksFull);
  for (const auto end = b_num + 8; b_num < end; ++b_num) send(data(b_num, 8'192));
  EXPECT_EQ(b.count(Counter::kBlocksFull), full);
  EXPECT_GT(b.count(Counter::kBlocksAbandoned), 0U);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(get(pb.port)) << i;
}

// protocol: 11.4
TEST_F(ConnectionlessRules, a_full_queue_drops_and_counts_and_says_nothing) {
  const auto capacity = pb.name.local_slots;
  for (std::uint32_t i = 0; i < capacity + 5; ++i) send(to_b(Op::kNoOperation));
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 5U);
  EXPECT_EQ(a.count(Counter::kSlotWaits), 0U) << "a sender knows of no Slots";
  send(data(1, 8'192));
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 6U);
  EXPECT_TRUE(untouched(4'096)) << "the STU that would complete the Block is not placed";
  ASSERT_TRUE(get(pb.port));
  send(data(1, 8'192));
  EXPECT_TRUE(arrived(8'192)) << "a repeat completes it";
  for (const auto& frame : seen) EXPECT_EQ(parsed(frame).src, kMacA) << "nothing is answered";
}

// protocol: 11.7
TEST_F(ConnectionlessRules, a_block_left_unfinished_does_not_keep_its_name_for_ever) {
  inject_stu(stu(1, 0, 0), 0, 4'096);
  now += UnscheduledBlocks::kMemory;
  send(data(1, 100, 20'000));
  EXPECT_TRUE(get(pb.port));
  EXPECT_EQ(b.count(Counter::kBlocksAbandoned), 1U);
}

// protocol: 11.8
TEST_F(ConnectionlessRules, blocks_are_tiled_by_the_senders_own_sizes) {
  send(data(1, 6'000, 4'000));
  std::vector<std::size_t> lengths;
  for (const auto& frame : seen) lengths.push_back(parsed(frame).stu.size());
  EXPECT_EQ(lengths, (std::vector<std::size_t>{96, 4'096, 1'808}));
}

// protocol: 11.9
TEST_F(ConnectionlessRules, what_a_node_would_answer_goes_to_the_user) {
  auto get_request = to_b(Op::kGet);
  get_request.header.param = 64;
  get_request.header.mx = pa.mx;
  get_request.header.sync = kTargetBufx;
  auto state = to_b(Op::kRequestState);
  state.header.sync = 12;
  auto answer = to_b(Op::kRequestStateResponse);
  answer.header.sync = 13;
  for (const auto& entry : {get_request, state, answer, to_b(Op::kNoOperation, flag::kSendState)}) {
    send(entry);
    const auto got = get(pb.port);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->header.op(), entry.header.op());
  }
  send(data(1, 64, 0, flag::kSendState));
  EXPECT_TRUE(get(pb.port));
  EXPECT_EQ(seen.size(), 5U) << "no frame came back";
}

// protocol: 11.10
TEST_F(ConnectionlessRules, connection_operations_do_not_end_an_endpoint) {
  for (const auto op : {Op::kRequestDisconnect, Op::kDisconnectAnswer, Op::kDisconnectComplete}) {
    wire::Header h;
    h.op_flags = wire::op_flags(op, 0);
    h.d_port = pb.name.local_port;
    h.d_key = pb.name.local_key;
    h.s_port = pa.name.local_port;
    inject(b, kMacA, h);
  }
  EXPECT_EQ(b.count(Counter::kBadState), 3U);
  EXPECT_EQ(b.node.listen(pb.endpoint, 3'000), -EOPNOTSUPP);
  VcId vc = kNoneId;
  EXPECT_EQ(b.node.connect(pb.endpoint, kMacA, 3'000, pb.port.memory->data(), 1, vc, now),
            -EOPNOTSUPP);
  settle();
  EXPECT_TRUE(seen.empty());
  send(to_b(Op::kNoOperation));
  EXPECT_TRUE(get(pb.port));
}

// protocol: 11.11
TEST_F(ConnectionlessRules, a_request_names_a_station_a_port_and_only_own_memory) {
  std::vector<SendEntry> refused(5, to_b(Op::kNoOperation));
  refused[0].destination_mac = 0;
  refused[1].destination_mac = 0xffff'ffff'ffff;
  refused[2].destination_mac |= std::uint64_t{1} << 48;
  refused[3].header.d_port = 0;
  refused[4].header.op_flags = wire::op_flags(Op::kRequestDisconnect, 0);
  auto cts = to_b(Op::kClearToSend);
  cts.header.param = 16;
  cts.header.mx = pa.mx;
  cts.header.bufx = kTargetBufx - 1;
  refused.push_back(cts);
  auto mra = to_b(Op::kMemoryRegionAvailable);
  mra.header.param = 1;
  mra.header.mx = 999;
  mra.header.set_t_len(1);
  refused.push_back(mra);
  auto get_request = to_b(Op::kGet);
  get_request.header.mx = pa.mx;
  get_request.header.sync = kTargetBufx + kBuffers - 1;
  get_request.header.b_num = 4'095;
  get_request.header.param = 2;
  refused.push_back(get_request);
  auto from_nowhere = data(1, 4'096);
  from_nowhere.bufx = kSourceBufx + kBuffers;
  refused.push_back(from_nowhere);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    send(refused[i]);
    EXPECT_EQ(pa.port.user.refused(), i + 1) << i;
  }
  EXPECT_TRUE(seen.empty());
  cts.header.bufx = kTargetBufx;
  send(cts);
  EXPECT_EQ(seen.size(), 1U);
}

}  // namespace
}  // namespace stp::test
