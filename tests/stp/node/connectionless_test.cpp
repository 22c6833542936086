// SPDX-License-Identifier: BSD-3-Clause
// Promises to the owner of a connectionless endpoint.
#include <cerrno>

#include "tests/stp/node/endpoints_fixture.h"

namespace stp::test {
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
