// SPDX-License-Identifier: BSD-3-Clause
// Unproven requesters, whose address may be false: few are kept, others have to prove that the
// answer has reached them, and other users are not affected (protocol, 5.34 to 5.42).
#include <set>

#include "stp/node/shards.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;
namespace flag = wire::flag;

class Strangers : public TwoNodes {
 protected:
  Strangers() = default;
  explicit Strangers(const NodeConfig& base) : TwoNodes(base) {}

  static constexpr unsigned kOfListener = 16, kOfSource = 8, kAtOnce = 32;
  static constexpr unsigned kStock = 16;

  // B listens like a service: it accepts connections at once, or not at all. Channels in stock and
  // those of connections that are not accepted are `channels` together.
  void listen(EndpointConfig config = {}, unsigned channels = kStock) {
    listener = b.open(config);
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    channels_ = channels;
    serve();
  }
  void serve() {
    for (const auto& event : b.events) {
      const auto unseen = event.kind == Event::Kind::kVcGone && !accepted_.contains(event.id);
      unaccepted_ -= unseen ? 1 : 0;
    }
    b.events.clear();
    VcId id = kNoneId;
    for (; accepts_ && b.node.accept(listener, id) == 0; --unaccepted_) accepted_.insert(id);
    for (; unaccepted_ < channels_; ++unaccepted_) b.stock(listener);
  }
  static MacAddr mac(std::uint64_t number) { return MacAddr::from_u64(0x020000000000 + number); }
  // An address that no host has.
  static MacAddr spoofed(std::uint64_t number) { return mac(0x10000 + number); }
  static wire::Header rc(std::uint32_t key = 99, std::uint16_t port = 5) {
    wire::Header h;
    h.op_flags = wire::op_flags(Op::kRequestConnection);
    h.param = 33;
    h.s_port = port;
    h.bufx = 12;
    h.offset = key;
    h.sync = 9;
    h.d_id = 3000;
    return h;
  }
  // Sends as many silent requests as are kept without proof.
  void fill() {
    for (unsigned i = 0; i < kOfListener; ++i) {
      inject(b, spoofed(i), rc());
      serve();
    }
    ASSERT_EQ(b.node.vc_count(), kOfListener);
    while (take(b)) continue;
  }
  std::vector<wire::Header> answers() {
    std::vector<wire::Header> all;
    while (const auto frame = take(b)) all.push_back(parsed(*frame).header);
    return all;
  }
  // A peer's response to the question that came with the answer to it.
  static wire::Header response(const wire::Header& question, std::uint16_t port = 5) {
    wire::Header h;
    h.op_flags = wire::op_flags(Op::kRequestStateResponse, flag::kReject);
    h.param = 33;
    h.d_port = question.s_port;
    h.s_port = port;
    h.sync = question.sync;
    h.b_num = question.b_num;
    h.d_id = question.s_id;
    h.s_id = question.d_id;
    return h;
  }
  // The CA that a requester gets under pressure, and its response to the RS that follows.
  struct Proof {
    wire::Header answer, response;
  };
  Proof ask_under_pressure(const MacAddr& from, const wire::Header& request, Bytes option = {}) {
    inject(b, from, request, option);
    const auto said = answers();
    EXPECT_EQ(said.size(), 2U);
    if (said.size() != 2) return {};
    EXPECT_EQ(said[0].op(), Op::kConnectionAnswer);
    EXPECT_EQ(said[1].op(), Op::kRequestState);
    auto back = response(said[1], request.s_port);
    back.d_key = said[0].offset;
    return {said[0], back};
  }
  VcInfo newest() {
    VcId id = kNoneId;
    EXPECT_EQ(b.node.accept(listener, id), 0);
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(id, info), 0);
    return info;
  }

  unsigned channels_ = 0, unaccepted_ = 0;
  bool accepts_ = true;
  std::set<VcId> accepted_;
};

// B is one of four Nodes behind its address.
struct HasShards {
  Shards shards{4};
};
class StrangersOfAShard : private HasShards, public Strangers {
 protected:
  StrangersOfAShard() : Strangers(config(shards)) {}

 private:
  static NodeConfig config(Shards& shards) {
    NodeConfig config;
    config.shards = &shards;
    config.shard = 3;
    return config;
  }
};

// protocol: 5.35, 5.36
TEST_F(StrangersOfAShard, are_promised_ports_of_that_shard_and_can_come_back) {
  listen();
  fill();
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto from = mac(100 + i);
    const auto proof = ask_under_pressure(from, rc(100 + i));
    ASSERT_EQ(proof.answer.s_port % 4, 3) << i;
    b.stock(listener);
    inject(b, from, proof.response);
    ASSERT_EQ(b.count(Counter::kRcProven), i + 1);
  }
}

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

// protocol: 5.35, 5.37
TEST_F(Strangers, beyond_a_few_a_connection_is_made_once_its_answer_has_come_back) {
  listen();
  fill();
  accepts_ = false;
  const auto proof = ask_under_pressure(mac(77), rc(4711));
  EXPECT_EQ(b.node.vc_count(), kOfListener) << "nothing is kept";
  EXPECT_EQ(proof.answer.d_key, 4711U);
  EXPECT_EQ(proof.answer.param, 64U);
  EXPECT_EQ(proof.answer.bufx, 14U);
  EXPECT_EQ(proof.answer.s_id, 3000U);
  EXPECT_EQ(b.count(Counter::kRcCookies), 1U);
  inject(b, mac(77), proof.response);
  ASSERT_EQ(b.node.vc_count(), kOfListener + 1);
  const auto made = newest();
  EXPECT_EQ(made.state, VcState::kOpen);
  EXPECT_EQ(made.peer_mac, mac(77));
  EXPECT_EQ(made.local_port, proof.answer.s_port);
  EXPECT_EQ(made.local_key, proof.answer.offset);
  EXPECT_EQ(made.remote_port, 5);
  EXPECT_EQ(made.remote_key, 4711U);
  EXPECT_EQ(made.remote_slots, 33U);
  EXPECT_EQ(made.credit, 33U);
  EXPECT_EQ(made.remote_bufsize, 12U);
  EXPECT_EQ(made.remote_max_stu, 9U);
  EXPECT_EQ(made.uport, 3000U);
  EXPECT_TRUE(made.passive);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
  // The response arrives twice: this makes neither a second connection nor a header for the user.
  UserChannel user(b.stocked.at(made.cookie - 1)->data());
  inject(b, mac(77), proof.response);
  ReceivedEntry entry;
  EXPECT_FALSE(user.receive(entry));
  EXPECT_EQ(b.node.vc_count(), kOfListener + 1);
  // The RC arrives again: it gets the same CA.
  inject(b, mac(77), rc(4711));
  const auto again = answers();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].offset, proof.answer.offset);
}

// protocol: 5.36
TEST_F(Strangers, the_key_of_an_answer_is_good_for_its_requester_and_for_a_while) {
  listen();
  fill();
  const auto proof = ask_under_pressure(mac(77), rc());
  // Other requesters displace its entry: there are 1024 Ports, and many more requesters.
  for (unsigned i = 0; i < 5'000; ++i) {
    now += 500 * kMicrosecond / 2;
    inject(b, spoofed(1'000 + i), rc());
    answers();
  }
  const auto cookies = b.count(Counter::kRcCookies);
  EXPECT_GT(cookies, 3'000U);
  const auto other = [&](auto&& change) {
    auto h = proof.response;
    change(h);
    return h;
  };
  inject(b, mac(78), proof.response);
  inject(b, mac(77), other([](auto& h) { ++h.d_key; }));
  inject(b, mac(77), other([](auto& h) { ++h.d_port; }));
  inject(b, mac(77), other([](auto& h) { ++h.s_port; }));
  inject(b, mac(77), other([](auto& h) { ++h.sync; }));
  inject(b, mac(77), other([](auto& h) { h.d_id += 1U << 16; }));
  inject(b, mac(77), other([](auto& h) { h.d_id |= 0xff00; }));
  inject(b, mac(77), other([](auto& h) { ++h.s_id; }));
  EXPECT_EQ(b.count(Counter::kBadPort), 8U);
  EXPECT_EQ(b.node.vc_count(), kOfListener);
  inject(b, mac(77), proof.response);
  EXPECT_EQ(b.node.vc_count(), kOfListener + 1) << "what it says is all that is needed";

  now += kSecond;
  const auto old = ask_under_pressure(mac(79), rc());
  now += 4 * kSecond;
  inject(b, mac(79), old.response);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
}

// The entries of most of them have been displaced.
// protocol: 5.36
TEST_F(Strangers, no_two_requesters_are_promised_one_port) {
  listen();
  fill();
  std::set<std::uint16_t> promised;
  for (unsigned i = 0; i < 1'000; ++i) {
    now += 400 * kMicrosecond;
    inject(b, spoofed(1'000 + i), rc());
    for (const auto& h : answers()) {
      if (h.op() != Op::kConnectionAnswer) continue;
      EXPECT_TRUE(promised.insert(h.s_port).second) << i;
    }
  }
  EXPECT_EQ(promised.size(), 1'000U);
}

// protocol: 5.38
TEST_F(Strangers, any_frame_with_the_key_proves_it_while_its_request_is_kept) {
  listen();
  fill();
  accepts_ = false;
  std::array<std::byte, wire::kOptionSize> words{};
  words.fill(std::byte{'w'});
  auto request = rc();
  request.s_id = 808;  // the question does not carry these
  const auto proof = ask_under_pressure(mac(77), request, words);
  wire::Header nop;
  nop.op_flags = wire::op_flags(Op::kNoOperation);
  nop.d_port = proof.answer.s_port;
  nop.d_key = proof.answer.offset;
  nop.s_port = 5;
  inject(b, mac(77), nop);
  ASSERT_EQ(b.node.vc_count(), kOfListener + 1);
  const auto made = newest();
  EXPECT_EQ(made.peer_option, to_option(words));
  EXPECT_EQ(made.peer_uport, 808U);
  UserChannel user(b.stocked.at(made.cookie - 1)->data());
  ReceivedEntry entry;
  EXPECT_TRUE(user.receive(entry)) << "and is not lost";
}

// protocol: 5.35, 5.38
TEST_F(Strangers, who_finds_no_channel_is_not_forgotten_for_others) {
  listen();
  fill();
  const auto proof = ask_under_pressure(mac(77), rc());
  std::uint64_t cookie = 0;
  while (b.node.unstock(listener, cookie)) --unaccepted_;
  inject(b, mac(77), proof.response);
  EXPECT_EQ(b.node.vc_count(), kOfListener);
  serve();
  for (unsigned i = 0; i < 5'000; ++i) {
    now += 500 * kMicrosecond / 2;
    inject(b, spoofed(1'000 + i), rc());
    answers();
  }
  wire::Header nop;
  nop.op_flags = wire::op_flags(Op::kNoOperation);
  nop.d_port = proof.answer.s_port;
  nop.d_key = proof.answer.offset;
  nop.s_port = 5;
  inject(b, mac(77), nop);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
}

// Its answer may be in flight while its request is repeated and a place has become free.
// protocol: 5.4, 5.36
TEST_F(Strangers, a_repeated_request_gets_the_answer_that_was_given_before) {
  listen();
  fill();
  const auto first = ask_under_pressure(mac(77), rc());
  now += 20 * kMillisecond;
  for (const auto id : accepted_) ASSERT_EQ(b.node.close(id, true, now), 0);
  while (take(b)) continue;
  now += 2 * kSecond;  // a new request would get another Key
  const auto again = ask_under_pressure(mac(77), rc());
  EXPECT_EQ(again.answer.s_port, first.answer.s_port);
  EXPECT_EQ(again.answer.offset, first.answer.offset);
  inject(b, mac(77), first.response);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
}

// protocol: 5.38
TEST_F(Strangers, who_ends_before_it_was_made_is_answered_and_stays_away) {
  listen();
  fill();
  const auto proof = ask_under_pressure(mac(77), rc());
  auto end = proof.response;
  end.op_flags = wire::op_flags(Op::kRequestDisconnect);
  end.offset = 99;
  inject(b, mac(77), end);
  const auto said = answers();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].op(), Op::kDisconnectAnswer);
  end.op_flags = wire::op_flags(Op::kDisconnectComplete);
  inject(b, mac(77), end);
  inject(b, mac(77), proof.response);
  inject(b, mac(77), rc());
  EXPECT_EQ(b.node.vc_count(), kOfListener);
  EXPECT_EQ(b.count(Counter::kLateRc), 2U);
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
  EXPECT_EQ(b.count(Counter::kBadSource), 3U);
  EXPECT_EQ(b.node.vc_count(), 0U);
  EXPECT_TRUE(answers().empty());
}

}  // namespace
}  // namespace stp::test
