// SPDX-License-Identifier: BSD-3-Clause
// Unproven requesters, whose address may be false: few are kept, and other users are not affected
// (protocol, 5.34, 5.39 to 5.42). How they prove it: strangers_proof_test.cpp.

#include "stp/node/connection/strangers.h"

#include <gtest/gtest.h>

#include "tests/stp/node/connection/strangers_fixture.h"

namespace stp::test::strangers_test {
namespace {

using wire::Op;

// protocol: 5.34, 5.39
TEST_F(Strangers, a_flood_of_requests_keeps_nobody_from_connecting_and_costs_a_bounded_room) {
  connect();
  accepted_.insert(cb.id);
  channels_ = kStock;
  serve();
  endpoint_a = a.open();
  Connection late;
  std::swap(late, ca);
  SeededRandom dice(7);
  std::size_t most = 0;
  const auto flood = [&](Time span) {  // 100,000 a second
    for (const auto end = now + span; now < end; now += 10 * kMicrosecond) {
      const auto from = MacAddr::from_u64(0x020000000000 | dice.next());
      inject(b, from, rc(dice.next(), static_cast<std::uint16_t>(dice.next() | 1)));
      serve();
      if (a.node.next_deadline() <= now) a.node.expire(now);
      if (b.node.next_deadline() <= now) b.node.expire(now);
      wire = [](const Frame& f, bool from_a) { return from_a || f[5] == std::byte{1} ? 1U : 0U; };
      settle();
      seen.clear();
      most = std::max(most, b.node.vc_count());
    }
  };
  flood(50 * kMillisecond);
  begin_connect();
  flood(100 * kMillisecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_LE(most, 2U + kOfListener);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
  EXPECT_EQ(b.count(Counter::kBacklogFull), 0U);
  EXPECT_EQ(late.user.state(), ChannelState::kOpen);
  put(a, ca, control(Op::kNoOperation));
  put(a, late, control(Op::kNoOperation));
  settle();
  EXPECT_TRUE(get(cb)) << "others are heard meanwhile";
  EXPECT_EQ(b.count(Counter::kBadPort), 0U);
}

// protocol: 5.39
TEST_F(Strangers, of_a_flood_only_those_are_answered_who_ask_again) {
  listen();
  fill();
  for (unsigned i = 0; i < 2 * kAtOnce; ++i) inject(b, spoofed(100 + i), rc());
  EXPECT_EQ(b.count(Counter::kRcCookies), kAtOnce);
  EXPECT_EQ(b.count(Counter::kRcFirst), kAtOnce);
  EXPECT_EQ(answers().size(), 2 * kAtOnce) << "a CA and an RS each";
  inject(b, spoofed(100 + kAtOnce), rc());
  EXPECT_EQ(b.count(Counter::kRcCookies), kAtOnce + 1);
}

// A link that keeps the addresses of peers needs to know: each of those has a connection here.
// protocol: 5.35, 13.4
TEST_F(Strangers, frames_say_whether_they_answer_somebody_without_a_connection) {
  listen();
  std::vector<bool> for_strangers;
  const auto answers_to = [&](unsigned from) {
    inject(b, spoofed(from), rc());
    serve();
    for_strangers.clear();
    while (take(b)) for_strangers.push_back(b.for_stranger);
    return for_strangers;
  };
  EXPECT_EQ(answers_to(0), std::vector{false}) << "the CA of a connection";
  EXPECT_EQ(answers_to(0), std::vector{true}) << "a repeated RC proves nothing";
  for (unsigned i = 1; i < kOfListener; ++i) answers_to(i);
  EXPECT_EQ(answers_to(kOfListener), (std::vector{true, true})) << "a CA and an RS: no connection";
  auto refused = rc();
  refused.d_id = 4000;
  inject(b, spoofed(99), refused);
  ASSERT_TRUE(take(b));
  EXPECT_TRUE(b.for_stranger) << "a refusal";
}

// protocol: 5.34
TEST_F(Strangers, one_address_does_not_take_the_places_of_others) {
  listen();
  for (unsigned i = 0; i < kOfListener; ++i) {
    inject(b, spoofed(1), rc(i + 1));
    serve();
  }
  EXPECT_EQ(b.node.vc_count(), kOfSource);
  EXPECT_EQ(b.count(Counter::kRcCookies), kOfListener - kOfSource);
  inject(b, spoofed(2), rc());
  EXPECT_EQ(b.node.vc_count(), kOfSource + 1);
}

// The sender of requests under a false address makes others send to that address: six frames for
// each request that is kept without proof, and two for any other.
// protocol: 5.23, 5.34, 5.39
TEST_F(Strangers, silent_requesters_are_sent_few_frames) {
  listen();
  std::size_t frames = 0, bytes = 0;
  const auto count = [&] {
    while (const auto frame = take(b)) {
      ++frames;
      bytes += std::max(frame->size(), std::size_t{60});
    }
  };
  for (unsigned i = 0; i < kOfListener; ++i) {
    inject(b, spoofed(1), rc(i + 1));
    serve();
    count();
  }
  for (const auto end = now + 12 * kSecond; now < end; now += 10 * kMillisecond) {
    if (b.node.next_deadline() <= now) b.node.expire(now);
    serve();
    count();
  }
  EXPECT_EQ(frames, 6 * kOfSource + 2 * (kOfListener - kOfSource));
  EXPECT_EQ(bytes, 3'840U);
}

// protocol: 5.34, 5.40
TEST_F(Strangers, who_is_there_is_proven_by_being_asked_and_who_is_not_goes) {
  listen();
  endpoint_a = a.open();
  std::vector<Connection> silent;
  for (unsigned i = 0; i < kOfSource; ++i) {
    begin_connect();
    settle();
    serve();
    silent.push_back(std::move(ca));
  }
  for (unsigned i = 0; i < kOfListener - kOfSource; ++i) inject(b, spoofed(i), rc());
  serve();
  while (take(b)) continue;
  now += 20 * kMillisecond;
  seen.clear();
  inject(b, spoofed(50), rc());  // finds no place, so all are asked
  settle();
  now += 20 * kMillisecond;
  inject(b, spoofed(51), rc());
  EXPECT_EQ(b.node.vc_count(), kOfListener + 1) << "those of A have answered";
  pass(10 * kSecond);
  serve();
  for (const auto& connection : silent) EXPECT_EQ(connection.user.state(), ChannelState::kOpen);
}

// protocol: 5.40
TEST_F(Strangers, the_channel_of_a_silent_one_is_for_one_that_answers) {
  accepts_ = false;
  listen({}, 2);
  for (unsigned i = 0; i < 2; ++i) inject(b, spoofed(i), rc());
  while (take(b)) continue;
  inject(b, mac(77), rc());
  EXPECT_EQ(b.count(Counter::kBacklogFull), 1U);
  now += 10 * kMillisecond;
  inject(b, mac(77), rc());  // the silent ones are asked
  auto said = answers();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].op(), Op::kRequestState);
  now += 20 * kMillisecond;
  inject(b, mac(77), rc());  // and one of them is ended
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
  serve();
  said = answers();
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[0].op(), Op::kRequestDisconnect) << "should it be there, it knows";
  auto back = response(said[2]);
  back.d_key = said[1].offset;
  inject(b, mac(77), back);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
  EXPECT_EQ(b.node.vc_count(), 2U);
}

// protocol: 5.40
TEST_F(Strangers, a_user_who_is_asked_is_asked_by_who_goes_on_asking) {
  accepts_ = false;
  listen({.inspect = true}, 4);
  for (unsigned i = 0; i < 4; ++i) inject(b, spoofed(i), rc());
  EXPECT_EQ(b.node.vc_count(), 4U);
  const auto flood = [&](unsigned from) {
    for (unsigned i = from; i < from + 100; ++i) inject(b, spoofed(i), rc());
    serve();
  };
  for (unsigned i = 0; i < 7; ++i) {  // at 0, 10, 30, 70, 150, 310 and 630 ms
    flood(1'000 * (i + 1));
    inject(b, mac(77), rc());
    serve();
    now += (10 * kMillisecond) << i;
  }
  EXPECT_EQ(b.node.vc_count(), 4U);
  EXPECT_GE(b.count(Counter::kRcFirst), 701U);
  bool found = false;
  VcId id = kNoneId;
  VcInfo info{};
  while (b.node.accept(listener, id) == 0 && b.node.vc_info(id, info) == 0)
    found |= info.peer_mac == mac(77) && info.state == VcState::kAsked;
  EXPECT_TRUE(found);
}

// protocol: 5.41
TEST_F(Strangers, their_answers_displace_neither_users_nor_those_to_peers) {
  connect({.slots = 4'096}, {});
  while (take(b)) continue;
  wire::Header nobody = rc();
  nobody.d_id = 4'000;  // is refused
  std::size_t users = 0, all = 0;
  SeededRandom dice(3);
  std::vector<Frame> heads(32, Frame(b.node.frame_room()));
  for (unsigned turn = 0; turn < 100; ++turn) {
    for (unsigned i = 0; i < 32; ++i)
      inject(b, MacAddr::from_u64(0x020000000000 | dice.next()), nobody);
    while (cb.user.writable() && users + 64 < 4'000) put(b, cb, control(Op::kNoOperation));
    std::vector<TxFrame> frames(32);
    for (unsigned i = 0; i < 32; ++i) frames[i].head = heads[i].data();
    const auto count = b.node.transmit(frames, now);
    all += count;
    for (std::size_t i = 0; i < count; ++i) users += heads[i][5] == std::byte{1};
  }
  EXPECT_EQ(all, 3'200U);
  EXPECT_GE(users * 100, all * 80);
  EXPECT_GT(b.count(Counter::kAnswersFull), 0U);
  // An RS of the peer is answered nevertheless.
  VcInfo info{};
  ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
  wire::Header rs;
  rs.op_flags = wire::op_flags(Op::kRequestState);
  rs.d_port = info.local_port;
  rs.s_port = info.remote_port;
  rs.d_key = info.local_key;
  rs.sync = 0x5151;
  rs.b_num = rs.d_id = wire::kNoId;
  inject(b, kMacA, rs);
  bool answered = false;
  for (const auto& h : answers())
    answered |= h.op() == Op::kRequestStateResponse && h.sync == 0x5151;
  EXPECT_TRUE(answered);
}

// protocol: 5.41
TEST_F(Strangers, one_address_has_few_answers_waiting) {
  wire::Header nobody = rc();
  for (std::uint32_t i = 0; i < 100; ++i) {
    nobody.offset = i + 1;
    inject(b, mac(77), nobody);
  }
  EXPECT_EQ(b.count(Counter::kAddressFull), 68U);
  inject(b, mac(78), nobody);
  EXPECT_EQ(answers().size(), 33U);
}

// Stations whose addresses differ in the last 16 bits only are one source.
class Networks final : public Sources {
 public:
  [[nodiscard]] MacAddr source_of(const MacAddr& station) const override {
    return MacAddr::from_u64(station.to_u64() >> 16);
  }
  [[nodiscard]] MacAddr network_of(const MacAddr& station) const override {
    return MacAddr::from_u64(station.to_u64() >> 32);
  }
};

class StrangersOfNetworks : public Strangers {
 protected:
  static inline const Networks networks{};
  StrangersOfNetworks()
      : Strangers(
            {.mac = {}, .max_stu = 13, .vlan = {}, .attach_from = 512, .sources = &networks}) {}
  static MacAddr of_crowd(std::uint64_t number) { return mac(0x10000 * (1 + number)); }
  static MacAddr of_another(std::uint64_t number) { return mac(0x100000000 + 0x10000 * number); }
  void ask_twice(const MacAddr& from) {
    inject(b, from, rc());
    inject(b, from, rc());
    serve();
  }
  static inline const MacAddr elsewhere = mac(0x200000000);
};

// protocol: 5.34, 5.41, 13.14
TEST_F(StrangersOfNetworks, all_stations_of_one_network_have_the_places_of_one) {
  const auto elsewhere = mac(0x20000);
  listen();
  for (unsigned i = 0; i < kOfListener; ++i) {
    inject(b, spoofed(i), rc());
    serve();
  }
  EXPECT_EQ(b.node.vc_count(), kOfSource);
  inject(b, elsewhere, rc());
  EXPECT_EQ(b.node.vc_count(), kOfSource + 1);
  answers();
  auto nobody = rc(7);
  nobody.d_id = 4'000;  // is refused
  for (unsigned i = 0; i < 100; ++i) inject(b, spoofed(i), nobody);
  EXPECT_EQ(b.count(Counter::kAddressFull), 68U);
  inject(b, elsewhere, nobody);
  EXPECT_EQ(answers().size(), 33U);
}

// One network asks under any number of addresses. One station of another network is shown to the
// user all the same, and stays until it has repeated its RC.
// protocol: 5.40, 13.14
TEST_F(StrangersOfNetworks, each_network_has_its_share_of_the_places_of_a_listener_that_inspects) {
  listen({.inspect = true});
  for (unsigned i = 0; i < kOfListener; ++i) inject(b, of_crowd(i), rc()), serve();
  ASSERT_EQ(accepted_.size(), kOfListener);
  const auto crowd = accepted_;
  for (const auto id : crowd) ASSERT_EQ(b.node.admit(id, {}, now), 0);  // nobody answers the CAs
  const auto failed = [&] {
    VcInfo info{};
    return std::ranges::count_if(crowd, [&](VcId id) {
      return b.node.vc_info(id, info) == 0 && info.state == VcState::kFailed;
    });
  };
  ask_twice(of_crowd(100));
  EXPECT_EQ(accepted_.size(), kOfListener) << "its network has all the places that there are";
  ask_twice(elsewhere);
  EXPECT_EQ(failed(), 0) << "they have had no time to answer";
  now += kSecond;
  ask_twice(elsewhere);
  ASSERT_EQ(accepted_.size(), kOfListener + 1);
  EXPECT_EQ(failed(), 1) << "a user learns which one has given way";
  const auto it = *std::ranges::find_if(accepted_, [&](VcId id) { return !crowd.contains(id); });
  VcInfo info{};
  ASSERT_EQ(b.node.vc_info(it, info), 0);
  EXPECT_EQ(info.peer_mac, elsewhere);
  for (unsigned i = 0; i < 100; ++i) {
    now += 40 * kMillisecond;  // whoever is ASKED has not repeated its RC in time
    ask_twice(of_crowd(200 + i));
  }
  ASSERT_EQ(b.node.vc_info(it, info), 0);
  EXPECT_EQ(info.state, VcState::kAsked);
}

// Many stations of one network ask at once, and are no attack.
// protocol: 5.40
TEST_F(StrangersOfNetworks,
       who_gives_way_before_it_could_ask_again_is_not_refused_and_may_ask_again) {
  listen({.inspect = true});
  for (unsigned i = 0; i < kOfListener; ++i) inject(b, of_crowd(i), rc()), serve();
  now += 5 * kMillisecond;
  ask_twice(elsewhere);
  ASSERT_EQ(accepted_.size(), kOfListener + 1);
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
  EXPECT_TRUE(answers().empty());
  VcInfo info{};
  const auto gone = *std::ranges::find_if(accepted_, [&](VcId id) {
    return b.node.vc_info(id, info) == 0 && info.state == VcState::kFailed;
  });
  EXPECT_EQ(info.peer_mac, of_crowd(0));
  ASSERT_EQ(b.node.refuse(gone, {}, now), 0);
  now += 5 * kMillisecond;
  for (unsigned i = 0; i < kOfListener; ++i) inject(b, of_crowd(i), rc());
  now += 20 * kMillisecond;
  for (unsigned i = 0; i < kOfListener; ++i) inject(b, of_crowd(i), rc());
  serve();
  ASSERT_EQ(accepted_.size(), kOfListener + 2);
  ASSERT_EQ(b.node.vc_info(*accepted_.rbegin(), info), 0);
  EXPECT_EQ(info.peer_mac, of_crowd(0));
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
}

// No matter how many networks ask under false addresses.
// protocol: 5.40
TEST_F(StrangersOfNetworks, nobody_gives_way_at_once_whose_network_has_half_of_the_places) {
  listen({.inspect = true});
  for (unsigned i = 0; i < kOfListener / 2; ++i) {
    inject(b, of_crowd(i), rc());
    inject(b, of_another(i), rc());
    serve();
  }
  ask_twice(elsewhere);
  EXPECT_EQ(accepted_.size(), kOfListener);
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 0U);
  now += 40 * kMillisecond;
  ask_twice(elsewhere);
  EXPECT_EQ(accepted_.size(), kOfListener + 1) << "they have not asked again";
  EXPECT_EQ(answers().size(), 1U) << "the one that has gone is refused";
}

// protocol: 5.40
TEST_F(StrangersOfNetworks, without_a_channel_only_those_give_way_whose_channel_comes_back) {
  constexpr unsigned kChannels = 12;
  accepts_ = false;
  listen({.inspect = true}, kChannels);
  for (unsigned i = 0; i < kChannels; ++i) inject(b, of_crowd(i), rc());
  ASSERT_EQ(b.node.vc_count(), kChannels);
  ask_twice(elsewhere);
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
  inject(b, elsewhere, rc());
  EXPECT_EQ(b.node.vc_count(), kChannels) << "it has the channel that came back";
  std::vector<VcId> seen_ones(kChannels);
  for (auto& id : seen_ones) ASSERT_EQ(b.node.accept(listener, id), 0);
  ask_twice(of_another(0));
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U) << "its user still holds it";
  for (const auto id : seen_ones) ASSERT_EQ(b.node.admit(id, {}, now), 0);
  now += 2 * kSecond;
  ask_twice(of_another(1));
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
}

// protocol: 5.42
TEST_F(Strangers, our_own_address_is_nobody_elses) {
  listen();
  inject(b, kMacB, rc());
  auto h = rc();
  h.op_flags = wire::op_flags(Op::kConnectionAnswer);
  h.d_port = 9;
  inject(b, kMacB, h);
  h.op_flags = wire::op_flags(Op::kRequestDisconnect);
  inject(b, kMacB, h);
  // Nor where a link received head and rest apart.
  Frame head(100);
  head.resize(wire::emit_head({b.config.mac, kMacB, {}, false}, rc(), {}, head.data()));
  const LoopedFrame apart{head, {}};
  b.node.receive_apart({&apart, 1}, now);
  EXPECT_EQ(b.count(Counter::kBadSource), 4U);
  EXPECT_EQ(b.node.vc_count(), 0U);
  EXPECT_TRUE(answers().empty());
}

}  // namespace
}  // namespace stp::test::strangers_test

namespace stp::test {
namespace {

constexpr auto kOneSource = MacAddr::from_u64(0x020000000001);
constexpr auto kOtherSource = MacAddr::from_u64(0x020000000002);

MacAddr station(std::size_t number) {
  return MacAddr::from_u64(0x020000010000 + number);
}

class UnprovenTest : public ::testing::Test {
 protected:
  Unproven unproven;

  void add(EndpointId listener, const MacAddr& mac, std::size_t count = 1) {
    for (std::size_t i = 0; i < count; ++i)
      unproven.add({.vc = ++last_, .listener = listener, .source = mac});
  }
  VcId last_ = 0;
};

// protocol: 5.34
TEST_F(UnprovenTest, one_source_takes_half_of_a_listeners_places) {
  add(1, kOneSource, Unproven::kOfSource - 1);
  EXPECT_FALSE(unproven.is_full(1, kOneSource));
  add(1, kOneSource);
  EXPECT_TRUE(unproven.is_full(1, kOneSource));
  EXPECT_FALSE(unproven.is_full(1, kOtherSource));
  EXPECT_FALSE(unproven.is_full(2, kOneSource)) << "another listener";
}

// protocol: 5.34
TEST_F(UnprovenTest, a_listener_has_few_places_for_all_sources) {
  for (std::size_t i = 0; i < Unproven::kOfListener; ++i) {
    EXPECT_FALSE(unproven.is_full(1, kOneSource)) << i;
    add(1, station(i));
  }
  EXPECT_TRUE(unproven.is_full(1, kOneSource));
  EXPECT_FALSE(unproven.is_full(2, kOneSource));
  unproven.remove_if([](const auto& entry) { return entry.source == station(3); });
  EXPECT_FALSE(unproven.is_full(1, kOneSource));
}

// protocol: 5.34
TEST_F(UnprovenTest, a_node_has_few_places_for_all_listeners) {
  for (std::size_t i = 0; i < Unproven::kOfNode; ++i) add(100 + i, station(i));
  EXPECT_TRUE(unproven.is_full(1, kOneSource));
  add(1, kOneSource);  // without a place, it is not kept
  EXPECT_EQ(unproven.entries().size(), Unproven::kOfNode);
  EXPECT_EQ(unproven.entries().front().vc, 1U);
  EXPECT_EQ(unproven.entries().back().vc, Unproven::kOfNode);
}

TEST_F(UnprovenTest, a_look_at_them_is_worth_it_when_there_are_new_ones_or_after_a_while) {
  unproven.looked_at(kSecond);
  EXPECT_FALSE(unproven.is_worth_a_look(kSecond + Unproven::kLookInterval - 1));
  EXPECT_TRUE(unproven.is_worth_a_look(kSecond + Unproven::kLookInterval));
  add(1, kOneSource);
  EXPECT_TRUE(unproven.is_worth_a_look(kSecond));
  unproven.looked_at(kSecond);
  EXPECT_FALSE(unproven.is_worth_a_look(kSecond));
}

}  // namespace
}  // namespace stp::test
