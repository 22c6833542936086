// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/frame_sender.h"

#include <algorithm>
#include <random>

#include "tests/stp/node/nops_fixture.h"
#include "tests/stp/node/two_nodes.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class FrameSending : public Nops {
 protected:
  FrameSending()
      : Nops({.mac = {}, .max_stu = 13, .vlan = {}, .attach_from = 512, .sources = &kEachStation}) {
  }
};

TEST_F(FrameSending, one_frame_of_a_user_goes_before_the_states_that_its_peer_asked_for) {
  connect();
  for (int i = 0; i < 3; ++i) put(a, ca, control(Op::kRequestState));
  while (auto frame = take(a)) arrive(b, *frame);
  for (std::uint32_t i = 0; i < 2; ++i) put(b, cb, nop(i));
  EXPECT_EQ(burst(b),
            (std::vector{Op::kNoOperation, Op::kRequestStateResponse, Op::kRequestStateResponse,
                         Op::kRequestStateResponse, Op::kNoOperation}));
}

TEST_F(FrameSending, nothing_of_a_user_overtakes_the_answer_that_opens_its_connection) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  arrive(b, take(a).value());
  accept();
  put(b, cb, nop(1));
  EXPECT_EQ(burst(b), (std::vector{Op::kConnectionAnswer, Op::kNoOperation}));
}

// What is for a station that may not be there is not to keep others waiting.
TEST_F(FrameSending, frames_tell_whether_their_station_has_proven_lately_that_it_is_there) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  const auto request = take(a).value();
  EXPECT_EQ(a.presence, Presence::kNamed) << "nobody has answered";
  EXPECT_FALSE(a.for_stranger) << "a user has named it";
  arrive(b, request);
  accept();
  arrive(a, take(b).value());
  const auto is_silent = [&] {
    put(a, ca, nop(1));
    const auto frame = take(a);
    EXPECT_TRUE(frame);
    if (frame) arrive(b, *frame);
    return a.presence != Presence::kProven;
  };
  EXPECT_FALSE(is_silent());
  now += HeardStations::kLately - 1;
  EXPECT_FALSE(is_silent());
  ++now;
  EXPECT_TRUE(is_silent());
  put(b, cb, nop(1));
  arrive(a, take(b).value());
  EXPECT_EQ(b.presence, Presence::kProven) << "it has just been heard";
  EXPECT_FALSE(is_silent());
}

TEST_F(FrameSending, a_station_that_has_answered_lately_is_there_for_the_next_dial_too) {
  connect();
  put(b, cb, control(Op::kRequestState));
  arrive(a, take(b).value());
  ASSERT_TRUE(take(a)) << "its answer";
  const EndpointConfig config;
  const ChannelGeometry geometry{config.slots, config.credits};
  std::vector<std::unique_ptr<ChannelMemory>> channels;
  const auto presence_at_a_dial = [&] {
    while (take(a)) continue;  // the Node learns the time
    channels.push_back(std::make_unique<ChannelMemory>(geometry));
    VcId dial = kNoneId;
    EXPECT_EQ(a.node.connect(a.open(), kMacB, 3000, channels.back()->data(), 78, dial, now), 0);
    EXPECT_TRUE(take(a));
    const auto presence = a.presence;
    a.node.close(dial, true, now);
    while (take(a)) continue;
    return presence;
  };
  EXPECT_EQ(presence_at_a_dial(), Presence::kProven);
  now += HeardStations::kLately;
  EXPECT_EQ(presence_at_a_dial(), Presence::kNamed);
}

TEST_F(FrameSending, a_user_that_breaks_its_ring_loses_its_connection_and_nothing_else) {
  connect();
  auto* const control_block = reinterpret_cast<ChannelControl*>(ca.memory->data());
  control_block->tx_head.store(1'000'000);
  a.node.kick(ca.id);
  settle();
  EXPECT_EQ(a.count(Counter::kRingBroken), 1U);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(a.node.vc_count(), 0U);
}

// One more owner, with a connection of its own from A to B.
class TwoOwners : public Nops {
 protected:
  Connection other_a, other_b;

  void SetUp() override {
    connect();
    std::swap(ca, other_a);
    std::swap(cb, other_b);
    b.stock(listener);
    ASSERT_EQ(a.node.open_endpoint({}, endpoint_a, 2), 0);
    begin_connect();
    settle();
    accept();
  }
};

TEST_F(TwoOwners, share_a_call_in_turns_of_sixteen_frames) {
  for (std::uint32_t i = 0; i < 24; ++i) put(a, other_a, nop(100 + i));
  for (std::uint32_t i = 0; i < 4; ++i) put(a, ca, nop(200 + i));
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 16; ++i) expected.push_back(100 + i);
  for (std::uint32_t i = 0; i < 4; ++i) expected.push_back(200 + i);
  for (std::uint32_t i = 16; i < 24; ++i) expected.push_back(100 + i);
  EXPECT_EQ(sent_by_a(64), expected);
}

TEST_F(TwoOwners, refused_requests_of_one_do_not_keep_the_other_from_sending) {
  for (int i = 0; i < 60; ++i) put(a, other_a, control(Op::kRequestDisconnect));
  put(a, ca, nop(200));
  EXPECT_EQ(sent_by_a(64), std::vector<std::uint32_t>{200});
  EXPECT_EQ(other_a.user.refused(), 60U);
  EXPECT_EQ(a.count(Counter::kTxRefused), 60U);
}

class SentBlocks : public Writing {};

TEST_F(SentBlocks, memory_that_is_unmapped_in_the_middle_of_a_block_ends_it) {
  const auto permission = grant(3 * kStu);
  put(a, ca, data(permission, 3 * kStu));
  const auto first = take(a);
  ASSERT_TRUE(first);
  EXPECT_EQ(parsed(*first).stu.size(), kStu);
  ASSERT_EQ(a.node.unmap(source_region), 0);
  EXPECT_FALSE(take(a));
  EXPECT_EQ(ca.user.refused(), 1U);
  EXPECT_TRUE(has_event(a, Event::Kind::kRegionGone));
  EXPECT_TRUE(ca.user.done(ca.user.sent())) << "its user may use the memory again";
}

}  // namespace
}  // namespace stp::test

namespace stp::test::whole_blocks_test {

// Blocks of one STU are sent by a fast path. The frames and what the user sees must be the same as
// with the general path, which a Node uses whose frames carry a tag.

namespace {

namespace flag = wire::flag;

constexpr unsigned kBufsize = 12;
constexpr std::size_t kBuffers = 4;
constexpr std::uint32_t kRegion = 7;
constexpr std::uint16_t kTag = 5;
constexpr std::size_t kMacs = 12;

// A and B, and a region of B that A puts into. Two of these differ only in the tag.
class Way : public TwoNodes {
 public:
  using Octets = std::vector<std::byte>;

  explicit Way(std::optional<std::uint16_t> vlan)
      : TwoNodes(NodeConfig{.mac = {}, .max_stu = kBufsize, .vlan = vlan, .attach_from = 512}) {
    connect({.bufsize = kBufsize, .slots = 16, .credits = 8},
            {.bufsize = kBufsize, .slots = 16, .credits = 8});
    source_.fill_pattern();
    const auto from = source_.all(), to = target_.all();
    RegionId region = kNoneId;
    EXPECT_EQ(a.node.map(endpoint_a, Direction::kTransmit, 0, {&from, 1}, sent_from_), 0);
    EXPECT_EQ(b.node.map(listener, Direction::kReceive, 0, {&to, 1}, region), 0);
    EXPECT_EQ(b.node.alloc_mx(region, kNoneId, permit::kData, mx_), 0);
    auto mra = control(wire::Op::kMemoryRegionAvailable);
    mra.header.param = 8;
    mra.header.mx = mx_;
    mra.header.set_t_len(target_.size());
    mra.header.s_id = kRegion;
    put(b, cb, mra);
    settle();
    for (ReceivedEntry entry; ca.user.receive(entry);) {
    }
    seen.clear();
  }
  // Sends a request of A's user and waits until all is done. Returns the sent frames without tags.
  std::vector<Octets> send(SendEntry entry) {
    entry.header.mx = mx_;
    entry.header.d_id = kRegion;
    put(a, ca, entry);
    settle();
    std::vector<Octets> frames;
    for (auto& frame : std::exchange(seen, {})) {
      if (parsed(frame).vlan)
        frame.erase(frame.begin() + kMacs, frame.begin() + kMacs + wire::kVlanSize);
      // With a tag a frame has less padding.
      frame.resize(std::max(frame.size(), wire::kEthernetSize + wire::kMinPayload));
      frames.push_back(std::move(frame));
    }
    return frames;
  }
  // What A's user sees, and what A and B have counted.
  [[nodiscard]] std::vector<std::uint64_t> state() {
    std::vector<std::uint64_t> state{ca.user.refused(), ca.user.taken(),
                                     ca.user.done(ca.user.sent()), a.attached_frames};
    for (const auto* const host : {&a, &b})
      for (std::size_t i = 0; i < kCounterCount; ++i) {
        const auto counter = static_cast<Counter>(i);
        const bool tags = counter == Counter::kTxBytes || counter == Counter::kRxBytes;
        state.push_back(tags ? 0 : host->count(counter));
      }
    VcInfo info{};
    EXPECT_EQ(a.node.vc_info(ca.id, info), 0);
    state.insert(state.end(), {info.credit, info.traffic.tx_data_bytes});
    for (ReceivedEntry entry; cb.user.receive(entry);) state.push_back(entry.header.b_num);
    return state;
  }
  [[nodiscard]] bool has_same_memory(const Way& other) const {
    return std::memcmp(target_.data(), other.target_.data(), target_.size()) == 0;
  }
  void unmap() { EXPECT_EQ(a.node.unmap(sent_from_), 0); }
  [[nodiscard]] std::uint64_t blocks() const { return b.count(Counter::kRxBlocks); }

 private:
  void TestBody() override {}

  Buffers source_{kBufsize, kBuffers}, target_{kBufsize, kBuffers};
  RegionId sent_from_ = kNoneId;
  std::uint16_t mx_ = 0;
};

SendEntry block(std::uint32_t b_num, std::uint32_t length, std::uint16_t flags = flag::kSilent) {
  SendEntry entry{};
  entry.header.op_flags = wire::op_flags(wire::Op::kData, flags);
  entry.header.b_num = b_num;
  entry.header.sync = b_num + 100;
  entry.length = length;
  return entry;
}

struct Both {
  Way shortest_{std::nullopt}, other_{kTag};

  void expect_alike(const SendEntry& entry) {
    EXPECT_TRUE(shortest_.send(entry) == other_.send(entry)) << entry.header.b_num;
    EXPECT_EQ(shortest_.state(), other_.state());
    EXPECT_TRUE(shortest_.has_same_memory(other_));
  }
};

class WholeBlocks : public Both, public ::testing::Test {};

// protocol: 8.2, 8.3
TEST_F(WholeBlocks, leave_as_any_other_block_does) {
  std::uint32_t b_num = 0;
  for (std::uint32_t const length : {0U, 1U, 5U, 6U, 8U, 511U, 512U, 4096U, 4097U})
    expect_alike(block(b_num++, length));
  EXPECT_EQ(shortest_.blocks(), b_num);
}

// protocol: 6.2, 6.3
TEST_F(WholeBlocks, take_slots_and_ask_as_any_other_block_does) {
  for (std::uint32_t b_num = 0; b_num < 40; ++b_num)
    expect_alike(block(b_num, 8, b_num % 3 == 0 ? flag::kSendState : flag::kInterrupt));
  EXPECT_EQ(shortest_.blocks(), 40U);
}

// protocol: 7.7, 12.4
TEST_F(WholeBlocks, what_is_refused_is_refused_by_any_way) {
  auto bad = block(0, 8, flag::kReserved);
  expect_alike(bad);
  bad = block(0, 8, flag::kFunction);
  expect_alike(bad);
  bad = block(0, 8);
  bad.payload_length = wire::kAppendSize;  // legal, and an append
  expect_alike(bad);
  bad = block(1, 8);
  bad.payload_length = 1;
  expect_alike(bad);
  bad = block(1, 8);
  bad.header.offset = 1U << kBufsize;
  expect_alike(bad);
  bad = block(1, 8);
  bad.offset = 1U << kBufsize;
  expect_alike(bad);
  bad = block(1, 8);
  bad.bufx = kBuffers;
  expect_alike(bad);
  bad = block(1, 8);
  bad.bufx = kBuffers - 1;
  bad.offset = (1U << kBufsize) - 4;
  expect_alike(bad);
  expect_alike(block(1, 8));
  EXPECT_EQ(shortest_.blocks(), 2U);
  shortest_.unmap();
  other_.unmap();
  expect_alike(block(2, 8));
  EXPECT_EQ(shortest_.blocks(), 2U);
}

// An incomplete Block stays in the window, so the test begins with new Nodes from time to time.
TEST(WholeBlocksAtRandom, any_request_is_treated_as_by_the_other_way) {
  std::mt19937 random(1);
  const auto below = [&](unsigned bound) { return static_cast<std::uint32_t>(random() % bound); };
  std::uint64_t blocks = 0;
  for (unsigned round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
    Both both;
    for (unsigned i = 0; i < 30; ++i) {
      auto entry = block(static_cast<std::uint32_t>(both.shortest_.blocks()), below(700));
      if (below(8) == 0) entry.length = below(2U << kBufsize);
      entry.bufx = below(kBuffers);
      entry.offset = below(1U << kBufsize);
      entry.header.bufx = below(kBuffers);
      entry.header.offset = below(1U << kBufsize);
      entry.header.op_flags ^= static_cast<std::uint16_t>(below(4) == 0 ? below(0x800) : 0);
      auto* const bytes = reinterpret_cast<std::byte*>(&entry);
      if (below(8) == 0) bytes[offsetof(SendEntry, length) + below(14)] ^= std::byte{1} << below(8);
      both.expect_alike(entry);
    }
    blocks += both.shortest_.blocks();
  }
  EXPECT_GT(blocks, 300U);
}

}  // namespace
}  // namespace stp::test::whole_blocks_test
