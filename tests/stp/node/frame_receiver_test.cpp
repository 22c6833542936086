// SPDX-License-Identifier: BSD-3-Clause
// DATA with the head that its connection expects takes a fast path. The result must be the same as
// for the same frame with a tag, which takes the general path: verdicts, memory, headers, answers.

#include <algorithm>
#include <cerrno>
#include <random>

#include "stp/wire/big_endian.h"
#include "tests/stp/node/connection/connect_fixture.h"
#include "tests/stp/node/endpoints_fixture.h"

namespace stp::test::frame_receiver_test {
namespace {

namespace flag = wire::flag;

constexpr std::uint32_t kRegion = 7;
constexpr std::uint16_t kWindow = 64;
constexpr unsigned kBufsize = 13;
constexpr std::size_t kBuffers = 4;
constexpr std::size_t kHead = wire::kEthernetSize + wire::kHeaderSize;

// A connection from A to B, and a region of B. Two of these are equal, including Ports and Keys.
class Way : public TwoNodes {
 public:
  using Bytes_ = std::vector<std::byte>;

  Way() : TwoNodes(NodeConfig{.mac = {}, .max_stu = kBufsize, .vlan = {}}) {
    connect({.bufsize = kBufsize}, {.bufsize = kBufsize});
    const auto all = target_.all();
    RegionId region = kNoneId;
    EXPECT_EQ(b.node.map(listener, Direction::kReceive, 0, {&all, 1}, region), 0);
    EXPECT_EQ(b.node.alloc_mx(region, kNoneId, permit::kData, mx_), 0);
    auto mra = control(wire::Op::kMemoryRegionAvailable);
    mra.header.param = kWindow;
    mra.header.mx = mx_;
    mra.header.set_t_len(target_.size());
    mra.header.s_id = kRegion;
    put(b, cb, mra);
    settle();
  }
  // The only STU of a Put Block, as A would send it.
  [[nodiscard]] Bytes_ block(std::uint32_t b_num, std::uint32_t at, std::size_t length,
                             std::uint16_t flags) const {
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(cb.id, info), 0);
    wire::Header h;
    h.op_flags = wire::op_flags(wire::Op::kData, flags);
    h.d_port = info.local_port;
    h.s_port = info.remote_port;
    h.d_key = info.local_key;
    h.mx = mx_;
    h.bufx = at >> kBufsize;
    h.offset = at % (1U << kBufsize);
    h.sync = b_num;
    h.b_num = b_num;
    h.d_id = kRegion;
    std::vector<std::byte> stu(length, static_cast<std::byte>(b_num + 1));
    std::vector<std::byte> append((flags & flag::kAppend) != 0 ? wire::kAppendSize : 0);
    Bytes_ frame(kHead + wire::kSnapSize + length + append.size() + wire::kMinPayload);
    frame.resize(wire::emit({kMacB, kMacA, {}, false}, h, stu, append, frame));
    return frame;
  }
  // Delivers the frame to B. Returns all that B sends and delivers, as one string of bytes.
  Bytes_ receive(const Bytes_& frame) {
    arrive(b, frame);
    Bytes_ out;
    const auto add = [&](const void* at, std::size_t size) {
      const auto* const bytes = static_cast<const std::byte*>(at);
      out.insert(out.end(), bytes, bytes + size);
    };
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      const auto counter = static_cast<Counter>(i);
      const auto value = counter == Counter::kRxBytes ? 0 : b.count(counter);
      add(&value, sizeof value);
    }
    for (ReceivedEntry entry{}; cb.user.receive(entry);) add(&entry, sizeof entry);
    while (const auto answer = take(b)) add(answer->data(), answer->size());
    for (const auto& event : b.events) add(&event.kind, sizeof event.kind);
    b.events.clear();
    return out;
  }
  void close() { EXPECT_EQ(b.node.close(cb.id, true, now), 0); }
  [[nodiscard]] std::uint64_t crossed() const { return b.count(Counter::kCrossedEnd); }
  [[nodiscard]] std::uint64_t blocks() const { return b.count(Counter::kRxBlocks); }
  [[nodiscard]] bool has_same_memory(const Way& other) const {
    return std::memcmp(target_.data(), other.target_.data(), target_.size()) == 0;
  }

 private:
  void TestBody() override {}

  Buffers target_{kBufsize, kBuffers};
  std::uint16_t mx_ = 0;
};

std::vector<std::byte> tagged(std::vector<std::byte> frame) {
  constexpr std::size_t kMacs = 12;
  std::byte tag[wire::kVlanSize];
  wire::store16(tag, wire::kVlanEtherType);
  wire::store16(tag + 2, 5);
  frame.insert(frame.begin() + kMacs, tag, tag + sizeof tag);
  return frame;
}

// Sends Blocks in and out of order, with all flags, and with some bytes of the heads changed.
class Sender {
 public:
  explicit Sender(unsigned seed) : random_(seed) {}
  std::vector<std::byte> next(const Way& way) {
    constexpr std::uint16_t kFlags[] = {flag::kSilent,
                                        0,
                                        flag::kSilent | flag::kSendState,
                                        flag::kInterrupt,
                                        flag::kOrder | flag::kSilent,
                                        flag::kAppend};
    const auto flags = static_cast<std::uint16_t>(flag::kLast | kFlags[below(std::size(kFlags))]);
    const auto b_num = below(8) == 0 ? b_num_ + below(4) : b_num_;
    const auto at = 8 * below(kBuffers << (kBufsize - 3));
    const auto room = (1U << kBufsize) - at % (1U << kBufsize);
    auto frame = way.block(b_num, at, std::min(room, 8 + below(200)), flags);
    if (below(2) != 0) return frame;
    for (auto changes = 1 + below(3); changes > 0; --changes) {
      const auto place = wire::kEthernetSize + below(wire::kHeaderSize);
      frame[place] ^= std::byte{1} << below(8);
    }
    if (below(10) == 0) frame.resize(wire::kEthernetSize + below(80), std::byte{});
    return frame;
  }
  void placed() { ++b_num_; }
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

 private:
  std::mt19937 random_;
  std::uint32_t b_num_ = 0;
};

// protocol: 5.18, 7.6, 8.9, 12.1
TEST(Receive, what_is_expected_is_treated_as_what_is_not) {
  std::uint64_t placed = 0;
  for (unsigned round = 0; round < 15 && !testing::Test::HasFailure(); ++round) {
    Way expected, other;
    Sender sender(round);
    for (unsigned i = 0; i < 200; ++i) {
      const auto frame = sender.next(expected);
      const auto before = expected.blocks();
      ASSERT_EQ(expected.receive(frame), other.receive(tagged(frame))) << round << ' ' << i;
      ASSERT_TRUE(expected.has_same_memory(other)) << round << ' ' << i;
      if (expected.blocks() != before) sender.placed();
    }
    placed += expected.blocks();
  }
  EXPECT_GT(placed, 300U);
}

// protocol: 5.17, 5.18
TEST(Receive, nothing_is_expected_of_a_connection_that_has_ended) {
  Way way;
  const auto frame = way.block(0, 0, 8, flag::kLast | flag::kSilent);
  way.receive(frame);
  EXPECT_EQ(way.blocks(), 1U);
  const auto next = way.block(1, 0, 8, flag::kLast | flag::kSilent);
  way.close();
  way.receive(next);
  EXPECT_EQ(way.blocks(), 1U);
  EXPECT_EQ(way.crossed(), 1U);
}

class Dropped : public Connect {};

// protocol: 2.9, 5.18
TEST_F(Dropped, strangers_are_dropped_and_counted_by_reason) {
  connect();
  const auto at_b = info(b, cb);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kNoOperation);
  h.d_port = at_b.local_port;
  h.s_port = at_b.remote_port;
  h.d_key = at_b.local_key;

  auto wrong = h;
  wrong.d_port = 250;
  inject(b, kMacA, wrong);
  EXPECT_EQ(b.count(Counter::kBadPort), 1U);
  wrong = h;
  wrong.d_key ^= 1;
  inject(b, kMacA, wrong);
  EXPECT_EQ(b.count(Counter::kBadKey), 1U);
  inject(b, MacAddr{{2, 0, 0, 0, 0, 9}}, h);
  EXPECT_EQ(b.count(Counter::kBadPeer), 1U);
  wrong = h;
  wrong.s_port += 1;
  inject(b, kMacA, wrong);
  EXPECT_EQ(b.count(Counter::kBadPeer), 2U);
  inject(b, MacAddr{{3, 0, 0, 0, 0, 1}}, h);
  EXPECT_EQ(b.count(Counter::kBadSource), 1U);
  EXPECT_FALSE(get(cb));
  inject(b, kMacA, h);
  EXPECT_TRUE(get(cb)) << "the same header with everything right is delivered";
}

// protocol: 2.10
TEST_F(Dropped, a_frame_for_another_station_is_not_looked_at) {
  wire::Header rd;
  rd.op_flags = wire::op_flags(Op::kRequestDisconnect);
  rd.s_port = 7;
  Frame frame(200);
  frame.resize(wire::emit({MacAddr{{2, 0, 0, 0, 0, 77}}, kMacA, {}, false}, rd, {}, {}, frame));
  arrive(b, frame);
  EXPECT_EQ(b.count(Counter::kNotForUs), 1U);
  EXPECT_FALSE(take(b));
}

}  // namespace
}  // namespace stp::test::frame_receiver_test

namespace stp::test {

// Promises to the owner of a connectionless endpoint.

namespace {

using wire::Op;
namespace flag = wire::flag;

TEST_F(Endpoints, RequestsToDifferentPeersGoOutInTheirOrder) {
  Party other;
  open(b, other, {.connectionless = true, .bufsize = kBufsize});
  for (int i = 0; i < 4; ++i) {
    put(a, pa.port, to_b(Op::kNoOperation));
    put(a, pa.port, addressed(other, kMacB, Op::kNoOperation));
  }
  settle();
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_EQ(parsed(seen[i]).header.d_port, (i % 2 == 0 ? pb : other).name.local_port);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(get(pb.port) && get(other.port));
}

TEST_F(Endpoints, OptionPayloadArrives) {
  auto entry = to_b(Op::kRequestToSend);
  entry.header.mx = 16;
  entry.payload_length = wire::kOptionSize;
  std::memset(entry.payload, 0x77, wire::kOptionSize);
  send(entry);
  const auto got = get(pb.port);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->payload_length, wire::kOptionSize);
  EXPECT_EQ(got->payload[31], 0x77);
}

TEST_F(Endpoints, ALostStuIsMadeGoodByRepeatingTheBlock) {
  wire = [lost = false](const Frame& frame, bool) mutable {
    const bool drop = parsed(frame).header.param == 1 && !lost;
    lost |= drop;
    return drop ? 0U : 1U;
  };
  send(data(1, 12'288));
  EXPECT_FALSE(get(pb.port));
  send(data(1, 12'288));
  EXPECT_TRUE(get(pb.port));
  EXPECT_FALSE(get(pb.port));
  EXPECT_TRUE(arrived(12'288));
}

TEST_F(Endpoints, StusInAnyOrderTwiceMakeOneBlock) {
  inject_stu(stu(1, 2, 8'192, flag::kLast), 8'192, 100);
  inject_stu(stu(1, 0, 4'000), 4'000, 96);
  inject_stu(stu(1, 0, 4'000), 4'000, 96);
  EXPECT_EQ(b.count(Counter::kDuplicateStu), 1U);
  inject_stu(stu(1, 1, 4'096), 4'096, 4'096);
  const auto got = get(pb.port);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->header.offset, 4'000U);
  EXPECT_TRUE(arrived(4'292, 4'000, 4'000));
  EXPECT_FALSE(get(pb.port));
}

TEST_F(Endpoints, NobodyIsWokenLaterWhoHasGone) {
  send(to_b(Op::kNoOperation));
  ASSERT_EQ(b.node.next_deadline(), now + 50 * kMicrosecond) << "the user may sleep";
  ASSERT_EQ(b.node.close(pb.port.id, true, now), 0);
  now += kMillisecond;
  b.node.expire(now);
  EXPECT_EQ(b.node.next_deadline(), kNever);
}

TEST_F(Endpoints, ASilentBlockTakesNoSlot) {
  for (std::uint32_t i = 0; i < pb.name.local_slots; ++i) send(to_b(Op::kNoOperation));
  send(data(1, 100, 0, flag::kSilent));
  EXPECT_TRUE(arrived(100));
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 0U);
}

TEST_F(Endpoints, ManyMoreBlocksThanPlacesGoThroughOneByOne) {
  for (std::uint32_t b_num = 0; b_num < 10'000; ++b_num) {
    send(data(b_num, b_num % 3 * 3'000));
    ASSERT_TRUE(get(pb.port)) << b_num;
  }
  EXPECT_EQ(b.count(Counter::kBlocksFull), 0U);
  EXPECT_EQ(b.count(Counter::kBlocksAbandoned), 0U);
}

TEST_F(Endpoints, ClosingSendsWhatIsQueuedAndGivesTheChannelBack) {
  put(a, pa.port, to_b(Op::kNoOperation));
  EXPECT_EQ(a.node.close(pa.port.id, false, now), 0);
  settle();
  EXPECT_TRUE(get(pb.port));
  EXPECT_EQ(pa.port.user.state(), ChannelState::kClosed);
  EXPECT_TRUE(has_event(a, Event::Kind::kVcGone));
  EXPECT_EQ(a.node.vc_count(), 0U);
  EXPECT_EQ(a.node.next_deadline(), kNever);
  EXPECT_EQ(a.node.unmap(pa.source_region), 0);
  EXPECT_EQ(a.node.unmap(pa.target_region), 0);
  EXPECT_EQ(a.node.close_endpoint(pa.endpoint), 0);
  EXPECT_EQ(a.count(Counter::kVcClosed), 0U) << "it was no connection";
}

// What its queue still holds names other stations, and these would take the question for a
// program's.
TEST_F(Endpoints, ClosingAfterASilenceAsksNobodyWhetherItIsAlive) {
  pass(5 * kSecond);
  put(a, pa.port, to_b(Op::kNoOperation));
  EXPECT_EQ(a.node.close(pa.port.id, false, now), 0);
  a.node.expire(now);  // before the queue is sent
  settle();
  EXPECT_EQ(seen.size(), 1U);
  const auto first = get(pb.port);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->header.op(), Op::kNoOperation);
  EXPECT_FALSE(get(pb.port));
}

TEST_F(Endpoints, ClosingAtOnceDropsWhatIsQueued) {
  put(a, pa.port, to_b(Op::kNoOperation));
  EXPECT_EQ(a.node.close(pa.port.id, true, now), 0);
  settle();
  EXPECT_FALSE(get(pb.port));
  EXPECT_EQ(pa.port.user.refused(), 1U);
}

TEST_F(Endpoints, OptionsAreFixedOnceThePortIsOpen) {
  EXPECT_EQ(a.node.configure(pa.endpoint, {.connectionless = true}), -EBUSY);
}

TEST_F(Endpoints, ARingThatMakesNoSenseEndsTheEndpointAlone) {
  auto* const control = reinterpret_cast<ChannelControl*>(pa.port.memory->data());
  control->tx_head.store(0x7fff'ffff);
  a.node.kick(pa.port.id);
  EXPECT_FALSE(take(a));
  settle();
  EXPECT_EQ(a.count(Counter::kRingBroken), 1U);
  EXPECT_TRUE(has_event(a, Event::Kind::kVcGone));
  EXPECT_EQ(pa.port.user.state(), ChannelState::kFailed);
}

class PacedEndpoints : public Endpoints {
 protected:
  PacedEndpoints()
      : Endpoints(NodeConfig{
            .mac = {}, .max_stu = 13, .vlan = {}, .attach_from = 512, .granted_limit = 4'096}) {}
};

TEST_F(PacedEndpoints, TheirGrantsAreNotHeldBack) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto cts = to_b(Op::kClearToSend);
    cts.header.param = 16;
    cts.header.mx = pa.mx;
    cts.header.bufx = kTargetBufx;
    cts.header.b_num = i;
    send(cts);
    EXPECT_TRUE(get(pb.port)) << i;
  }
  EXPECT_EQ(a.count(Counter::kCtsHeld), 0U);
}

}  // namespace
}  // namespace stp::test
