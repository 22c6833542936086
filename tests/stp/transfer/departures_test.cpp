// SPDX-License-Identifier: BSD-3-Clause
// A turn is delayed between reading the clock and sending a frame: the timeout of the frame must
// count from when it was sent.
#include "stp/transfer/departures.h"

#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Departure : public Writing {
 protected:
  static constexpr Time kHeldUp = 7 * kMillisecond;
  static constexpr Time kFirst = 10 * kMillisecond;  // before anything has been measured

  void SetUp() override { start({.recover = true}); }

  // `host` sends its frames up to `op`, and they are lost. The clock is read late after that.
  void leave_late(Host& host, Op op) {
    auto frame = take(host);
    while (frame && parsed(*frame).header.op() != op) frame = take(host);
    ASSERT_TRUE(frame);
    now += kHeldUp;
    while (take(host)) {
    }
  }
  // Waits until it is sent again, late too. Returns how long that took.
  Time again(Host& host, Op op) {
    const auto begun = now;
    while (now < begun + kSecond) {
      now = std::max(now, host.node.next_deadline());
      host.node.expire(now);
      const auto frame = take(host);
      if (!frame || parsed(*frame).header.op() != op) continue;
      const auto after = now - begun;
      now += kHeldUp;
      take(host);
      return after;
    }
    return kNever;
  }
};

// protocol: 10.20
TEST_F(Departure, of_a_request_for_a_connection_begins_its_clock) {
  Connection other;
  other.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
  ASSERT_EQ(a.node.connect(endpoint_a, kMacB, 3000, other.memory->data(), 78, other.id, now), 0);
  leave_late(a, Op::kRequestConnection);
  EXPECT_EQ(again(a, Op::kRequestConnection), kFirst);
  EXPECT_EQ(again(a, Op::kRequestConnection), 2 * kFirst) << "of each repeat as well";
}

// protocol: 10.20
TEST_F(Departure, of_a_request_for_the_end_begins_its_clock) {
  a.node.close(ca.id, true, now);
  leave_late(a, Op::kRequestDisconnect);
  EXPECT_EQ(again(a, Op::kRequestDisconnect), kFirst);
}

// protocol: 10.20
TEST_F(Departure, of_the_agreement_to_an_end_begins_its_clock) {
  a.node.close(ca.id, true, now);
  arrive(b, *take(a));
  leave_late(b, Op::kDisconnectAnswer);
  EXPECT_EQ(again(b, Op::kDisconnectAnswer), kFirst);
}

// protocol: 10.20
TEST_F(Departure, of_a_question_about_slots_begins_its_clock) {
  for (int i = 0; i < 32; ++i) put(a, ca, control(Op::kNoOperation));
  leave_late(a, Op::kRequestState);
  EXPECT_EQ(again(a, Op::kRequestState), kFirst);
}

// protocol: 10.20, 10.21, 10.3
TEST_F(Departure, of_a_grant_begins_the_data_timeout) {
  put(a, ca, rts(1'000));
  settle();
  put(b, cb, cts());
  leave_late(b, Op::kClearToSend);
  EXPECT_EQ(again(b, Op::kRequestState), 4 * kFirst) << "which asks whether it was seen";
  EXPECT_EQ(again(b, Op::kRequestState), kFirst);
}

TEST(Departures, KnowUntilWhenARequestWaited) {
  Departures departures;
  EXPECT_EQ(departures.before(1), 0);
  departures.add(5, 100);
  departures.add(9, 200);
  EXPECT_EQ(departures.before(7), 100) << "the Node took it between then and 200";
  EXPECT_EQ(departures.before(9), 100);
  EXPECT_EQ(departures.before(10), 200) << "it has not been taken yet";
}

}  // namespace
}  // namespace stp::test
