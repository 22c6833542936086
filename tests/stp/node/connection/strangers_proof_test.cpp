// SPDX-License-Identifier: BSD-3-Clause
// Requesters beyond a few have to prove their address: nothing is kept of them until the answer has
// come back (protocol, 5.35 to 5.38).
#include "stp/node/shards.h"
#include "tests/stp/node/connection/strangers_fixture.h"

namespace stp::test::strangers_proof_test {
namespace {

using wire::Op;

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

}  // namespace
}  // namespace stp::test::strangers_proof_test
