// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/send_bounds.h"

#include <gtest/gtest.h>

#include "tests/stp/node/endpoints_fixture.h"
#include "tests/stp/node/some_ways.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

constexpr std::size_t kFirstOfSender = SentWindow::kTimes * 16'384;  // bytes

// A sends Blocks that B has asked for, however much that is.
class SendBoundsTest : public Writing {
 protected:
  static constexpr std::size_t kBlock = std::size_t{1} << kBlocksize;
  explicit SendBoundsTest(bool routed = true)
      : Writing(NodeConfig{
            .mac = {}, .max_stu = kBufsize, .vlan = {}, .attach_from = 512, .routed = routed}) {}

  static bool is(const Frame& frame, Op op) { return parsed(frame).header.op() == op; }
  void lose_answers() {
    wire = [](const Frame& frame, bool from_a) {
      return !from_a && is(frame, Op::kRequestStateResponse) ? 0U : 1U;
    };
  }
  // Queues the same Block `times` times.
  void send(unsigned times) {
    const auto permission = grant(kBlock);
    seen.clear();
    for (; times > 0; --times) put(a, ca, data(permission, kBlock));
    settle();
  }
  std::size_t count_of(Op op) {
    return static_cast<std::size_t>(
        std::count_if(seen.begin(), seen.end(), [op](auto& frame) { return is(frame, op); }));
  }
  std::size_t bytes_sent() {
    std::size_t bytes = 0;
    for (const auto& frame : seen)
      if (is(frame, Op::kData)) bytes += parsed(frame).stu.size();
    return bytes;
  }
};

// protocol: 13.16
TEST_F(SendBoundsTest, what_is_proven_to_arrive_makes_room_for_more) {
  send(4);
  EXPECT_EQ(bytes_sent(), 4 * kBlock);
  const auto asks = count_of(Op::kRequestState);
  EXPECT_GE(asks, 4 * kBlock / (kFirstOfSender / 2));
  EXPECT_LE(asks, 4 * kBlock / (kFirstOfSender / 4));
  EXPECT_EQ(count_of(Op::kRequestStateResponse), asks);
  EXPECT_FALSE(get(ca)) << "the answers are not for the user";
}

// protocol: 13.16
TEST_F(SendBoundsTest, no_more_than_the_window_leaves_before_it_is_proven_to_have_arrived) {
  lose_answers();
  send(4);
  EXPECT_LE(bytes_sent(), kFirstOfSender);
  EXPECT_GT(bytes_sent(), kFirstOfSender - 2 * kStu - 2048) << "with the headers of each STU";
  pass(kSecond / 2);
  EXPECT_LE(bytes_sent(), kFirstOfSender);
  wire = {};
  pass(kSecond);
  EXPECT_EQ(bytes_sent(), 4 * kBlock) << "the question was asked again";
}

// protocol: 13.16
TEST_F(SendBoundsTest, questions_without_answer_are_asked_once_a_second) {
  lose_answers();
  send(4);
  seen.clear();
  pass(10 * kSecond);
  EXPECT_GE(count_of(Op::kRequestState), 9U);
  EXPECT_LE(count_of(Op::kRequestState), 25U) << "those of 5.23 are among them";
  EXPECT_EQ(bytes_sent(), 0U);
}

// Who asked may be gone. Another connection with that station waits.
TEST_F(SendBoundsTest, the_end_of_a_connection_holds_up_no_other) {
  lose_answers();
  send(4);
  const auto first = ca.id;
  auto memory = std::move(ca.memory);
  b.stock(listener);
  begin_connect();
  settle();
  accept();
  put(a, ca, control(Op::kNoOperation));
  settle();
  ASSERT_FALSE(get(cb)) << "there is no room on the path";
  ASSERT_EQ(a.node.close(first, true, now), 0);
  settle();
  EXPECT_EQ(a.node.vc_count(), 1U);
  wire = {};
  pass(2 * kSecond);
  EXPECT_TRUE(get(cb));
}

// Who asked is gone, and so are many that waited. It takes too long to look at all of them for one
// who may ask again, so what was sent counts as arrived.
TEST_F(SendBoundsTest, many_that_waited_and_are_gone_hold_up_no_other) {
  constexpr unsigned kGone = 40;
  struct Pair {
    Connection a, b;
  };
  const auto nothing = control(Op::kNoOperation);
  Pair first{std::move(ca), std::move(cb)};
  std::vector<Pair> others;
  for (unsigned i = 0; i <= kGone; ++i) {
    b.stock(listener);
    begin_connect();
    settle();
    accept();
    put(a, ca, nothing);
    settle();
    ASSERT_TRUE(get(cb));
    others.push_back({std::move(ca), std::move(cb)});
  }
  ca = std::move(first.a);
  cb = std::move(first.b);
  lose_answers();
  send(4);
  for (auto& other : others) put(a, other.a, nothing);
  settle();
  auto last = std::move(others.back());
  others.pop_back();
  ASSERT_FALSE(get(last.b)) << "there is no room on the path";
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  for (const auto& other : others) ASSERT_EQ(a.node.close(other.a.id, true, now), 0);
  pass(2 * kSecond);
  EXPECT_TRUE(get(last.b)) << "no question of it has been answered";
}

class SendBoundsOff : public SendBoundsTest {
 protected:
  SendBoundsOff() : SendBoundsTest(false) {}
};

TEST_F(SendBoundsOff, nothing_is_held_back_without_control_of_congestion) {
  lose_answers();
  send(4);
  EXPECT_EQ(bytes_sent(), 4 * kBlock);
  EXPECT_EQ(count_of(Op::kRequestState), 0U);
}

// ---- the rate of Ports

constexpr std::size_t kStuOfPort = 1'024, kMostStus = PortRates::kBudget / kStuOfPort + 1;

class PortRatesTest : public Endpoints {
 protected:
  explicit PortRatesTest(bool routed = true, SharedWays* ways = nullptr)
      : Endpoints(NodeConfig{.mac = {},
                             .max_stu = 10,
                             .vlan = {},
                             .attach_from = 512,
                             .routed = routed,
                             .ways = ways,
                             .sources = &kEachStation}) {}

  // A Block of all of the source.
  SendEntry block_to(const MacAddr& station) {
    auto block = data(next_++, pa.source.size());
    block.destination_mac = station.to_u64();
    return block;
  }
  void send_blocks(unsigned count, const MacAddr& station) {
    for (; count > 0; --count) put(a, pa.port, block_to(station));
    settle();
  }
  [[nodiscard]] std::size_t stus_to(const MacAddr& station) const {
    return static_cast<std::size_t>(std::ranges::count_if(seen, [&](const Frame& frame) {
      return std::memcmp(frame.data(), station.octets.data(), station.octets.size()) == 0;
    }));
  }
  [[nodiscard]] std::size_t stus_of(const Party& party) const {
    return static_cast<std::size_t>(std::ranges::count_if(seen, [&](const Frame& frame) {
      return parsed(frame).header.s_port == party.name.local_port;
    }));
  }
  void open_other(Party& other) { open(a, other, {.connectionless = true, .bufsize = kBufsize}); }

 private:
  std::uint32_t next_ = 0;
};

// protocol: 13.17
TEST_F(PortRatesTest, what_a_port_sends_to_a_station_has_a_bounded_rate) {
  send_blocks(4, kMacB);
  EXPECT_LE(stus_to(kMacB), kMostStus);
  EXPECT_GE(stus_to(kMacB), kMostStus - 2) << "with the headers of each STU";
  EXPECT_EQ(a.count(Counter::kPortHeld), 1U);
  pass(kSecond);
  EXPECT_LE(stus_to(kMacB), 11 * kMostStus);
  EXPECT_GE(stus_to(kMacB), 10 * (kMostStus - 2));
  pass(3 * kSecond);
  EXPECT_EQ(stus_to(kMacB), 4 * pa.source.size() / kStuOfPort) << "nothing is lost";
  EXPECT_TRUE(arrived(pa.source.size()));
}

// A Port may send to anybody: what counts is who has sent to a Port of this Node.
TEST_F(PortRatesTest, frames_tell_whether_their_station_has_proven_lately_that_it_is_there) {
  const auto is_silent = [&](const MacAddr& station) {
    auto request = to_b(wire::Op::kNoOperation);
    request.destination_mac = station.to_u64();
    put(a, pa.port, request);
    EXPECT_TRUE(take(a));
    return a.presence != Presence::kProven;
  };
  EXPECT_TRUE(is_silent(kMacB));
  put(b, pb.port, addressed(pa, kMacA, wire::Op::kNoOperation));
  arrive(a, take(b).value());
  EXPECT_FALSE(is_silent(kMacB));
  EXPECT_TRUE(is_silent(kStranger));
  now += HeardStations::kLately;
  EXPECT_TRUE(is_silent(kMacB));
}

// protocol: 13.17
TEST_F(PortRatesTest, control_operations_of_a_port_count_too) {
  constexpr unsigned kAtOnce = 64, kRounds = 20;
  for (unsigned i = 0; i < kRounds; ++i) {
    for (unsigned j = 0; j < kAtOnce; ++j)
      if (!pa.port.user.send(to_b(wire::Op::kNoOperation))) break;
    a.node.kick(pa.port.id);
    settle();
  }
  EXPECT_LE(stus_to(kMacB), PortRates::kBudget / wire::kHeaderSize + 1);
  EXPECT_EQ(a.count(Counter::kPortHeld), 1U);
}

// The user's queue fills, as it does when there is no room for another reason.
// protocol: 13.17
TEST_F(PortRatesTest, a_port_that_waits_does_not_take_more_requests) {
  unsigned queued = 0;
  while (pa.port.user.send(block_to(kMacB)) && queued < 1'000) {
    ++queued;
    a.node.kick(pa.port.id);
    settle();
  }
  EXPECT_LT(queued, 1'000U);
}

// What is refused takes no budget, and the request behind it needs one all the same.
// protocol: 13.17
TEST_F(PortRatesTest, refused_requests_open_no_way_around_it) {
  send_blocks(1, kMacB);
  pass(kSecond);
  seen.clear();
  send_blocks(1, kMacB);
  Party other;
  open_other(other);
  auto bad = to_b(wire::Op::kNoOperation);
  bad.header.d_port = 0;
  bad.destination_mac = kStranger.to_u64();
  for (unsigned i = 0; i < 8; ++i) {
    put(a, other.port, bad);
    put(a, other.port, to_b(wire::Op::kNoOperation));
  }
  settle();
  EXPECT_EQ(stus_of(other), 0U);
}

// protocol: 13.17
TEST_F(PortRatesTest, each_station_has_its_own) {
  send_blocks(1, kMacB);
  Party other;
  open_other(other);
  put(a, other.port, block_to(kStranger));
  settle();
  EXPECT_GE(stus_to(kStranger), kMostStus - 2);
  EXPECT_LE(stus_to(kMacB), kMostStus);
}

// protocol: 13.17
TEST_F(PortRatesTest, what_a_node_sends_to_itself_takes_no_way) {
  send_blocks(4, kMacA);
  EXPECT_EQ(stus_to(kMacA), 4 * pa.source.size() / kStuOfPort);
  EXPECT_EQ(a.count(Counter::kPortHeld), 0U);
}

// protocol: 13.17
TEST_F(PortRatesTest, ports_to_one_station_share_its_rate_in_turn) {
  Party other;
  open_other(other);
  send_blocks(2, kMacB);
  put(a, other.port, block_to(kMacB));
  pass(kSecond);
  EXPECT_LE(stus_to(kMacB), 11 * kMostStus);
  EXPECT_GE(stus_of(other), 4 * (kMostStus - 2)) << "the first one has used the budget before";
}

// A frame that has left is worth looking at one Port, however many wait.
TEST_F(PortRatesTest, many_that_wait_are_not_all_woken_for_one_frame) {
  constexpr unsigned kOthers = 40;
  std::vector<Party> others(kOthers);
  send_blocks(1, kMacB);
  for (auto& other : others) {
    open_other(other);
    put(a, other.port, block_to(kMacB));
  }
  settle();
  seen.clear();
  pass(kSecond);
  EXPECT_GE(stus_to(kMacB), 9 * (kMostStus - 2));
  EXPECT_LE(a.count(Counter::kPortHeld), 1 + kOthers + 2 * stus_to(kMacB));
}

TEST_F(PortRatesTest, the_end_of_ports_that_wait_holds_up_no_other) {
  constexpr unsigned kOthers = 40;
  std::vector<Party> others(kOthers);
  Party last;
  send_blocks(1, kMacB);
  for (auto& other : others) {
    open_other(other);
    put(a, other.port, block_to(kMacB));
    settle();
  }
  open_other(last);
  put(a, last.port, to_b(wire::Op::kNoOperation));
  settle();
  EXPECT_EQ(stus_of(last), 0U);
  ASSERT_EQ(a.node.close(pa.port.id, true, now), 0);
  for (const auto& other : others) ASSERT_EQ(a.node.close(other.port.id, true, now), 0);
  pass(kSecond / 10);
  EXPECT_EQ(stus_of(last), 1U);
}

// More of them than one call looks at.
// protocol: 13.17
TEST_F(PortRatesTest, stations_that_have_budgets_again_at_the_same_time_all_get_their_frames) {
  constexpr unsigned kStations = 70;
  const auto station = [](unsigned i) { return MacAddr::from_u64(0x0200'0000'0100 + i); };
  std::vector<Party> ports(kStations);
  for (unsigned i = 0; i < kStations; ++i) {
    open_other(ports[i]);
    put(a, ports[i].port, block_to(station(i)));
    put(a, ports[i].port, block_to(station(i)));
    settle();
  }
  pass(4 * kSecond);
  for (unsigned i = 0; i < kStations; ++i)
    EXPECT_EQ(stus_to(station(i)), 2 * pa.source.size() / kStuOfPort) << i;
}

class PortRatesOfSomeWays : protected HasWays, public PortRatesTest {
 protected:
  PortRatesOfSomeWays() : PortRatesTest(false, &ways) {}
};

// What went to a station before its way became one that is shared is no debt.
// protocol: 13.17
TEST_F(PortRatesOfSomeWays, only_stations_whose_way_is_shared_have_a_budget) {
  constexpr unsigned kBlocks = 4;
  send_blocks(kBlocks, kMacB);
  EXPECT_EQ(stus_to(kMacB), kBlocks * pa.source.size() / kStuOfPort);
  EXPECT_EQ(a.count(Counter::kPortHeld), 0U);
  ways.shared = {kMacB};
  seen.clear();
  send_blocks(1, kMacB);
  EXPECT_GE(stus_to(kMacB), kMostStus - 2);
  EXPECT_LE(stus_to(kMacB), kMostStus);
  EXPECT_EQ(a.count(Counter::kPortHeld), 1U);
}

TEST_F(PortRatesOfSomeWays, an_own_way_leaves_a_port_turns_of_sixteen_frames) {
  Party other;
  open(a, other, {.connectionless = true, .bufsize = kBufsize}, 2);
  const auto put_nop = [&](Party& party, std::uint32_t number) {
    auto nop = to_b(wire::Op::kNoOperation);
    nop.header.s_id = number;
    put(a, party.port, nop);
  };
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 24; ++i) put_nop(pa, 100 + i);
  for (std::uint32_t i = 0; i < 4; ++i) put_nop(other, 200 + i);
  for (std::uint32_t i = 0; i < 16; ++i) expected.push_back(100 + i);
  for (std::uint32_t i = 0; i < 4; ++i) expected.push_back(200 + i);
  for (std::uint32_t i = 16; i < 24; ++i) expected.push_back(100 + i);
  EXPECT_EQ(sent_by_a(64), expected);
}

class PortRatesOff : public PortRatesTest {
 protected:
  PortRatesOff() : PortRatesTest(false) {}
};

TEST_F(PortRatesOff, nothing_is_held_back_without_control_of_congestion) {
  send_blocks(4, kMacB);
  EXPECT_EQ(stus_to(kMacB), 4 * pa.source.size() / kStuOfPort);
  EXPECT_EQ(a.count(Counter::kPortHeld), 0U);
}

}  // namespace
}  // namespace stp::test
