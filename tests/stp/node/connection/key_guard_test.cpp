// SPDX-License-Identifier: BSD-3-Clause
// Guessing the Key of a connectionless endpoint (protocol, 11.12 and 11.13).
#include "stp/node/connection/key_guard.h"

#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;

class KeyGuesses : public TwoNodes {
 protected:
  void SetUp() override {
    const EndpointId endpoint = b.open({.connectionless = true, .slots = 8'000});
    cb.memory = std::make_unique<ChannelMemory>(ChannelGeometry{8'000, 64});
    ASSERT_EQ(b.node.open_port(endpoint, cb.memory->data(), 1, cb.id, now), 0);
    cb.user = UserChannel(cb.memory->data());
    ASSERT_EQ(b.node.vc_info(cb.id, at_), 0);
  }
  static MacAddr mac(std::uint64_t number) { return MacAddr::from_u64(0x020000000000 + number); }
  // Sends an operation and returns whether the user gets it.
  bool say(const MacAddr& from, bool right, std::uint16_t port = 5) {
    wire::Header h;
    h.op_flags = wire::op_flags(Op::kNoOperation);
    h.d_port = at_.local_port;
    h.s_port = port;
    h.d_key = at_.local_key + (right ? 0 : 1);
    inject(b, from, h);
    return get(cb).has_value();
  }
  VcInfo at_{};
};

// protocol: 11.12
TEST_F(KeyGuesses, who_names_wrong_keys_is_not_heard_for_longer_and_longer) {
  for (Time wait : {1, 2, 4, 8, 8}) {
    SCOPED_TRACE(wait);
    for (unsigned i = 0; i < KeyGuard::kGuesses; ++i) EXPECT_FALSE(say(mac(7), false));
    const auto wrong = b.count(Counter::kBadKey);
    const auto unread = b.count(Counter::kKeyGuesses);
    EXPECT_FALSE(say(mac(7), true)) << "the right one is not told from another";
    EXPECT_FALSE(say(mac(7), false));
    now += wait * kSecond - 1;
    EXPECT_FALSE(say(mac(7), true));
    EXPECT_EQ(b.count(Counter::kBadKey), wrong);
    EXPECT_EQ(b.count(Counter::kKeyGuesses), unread + 3);
    EXPECT_TRUE(say(mac(8), true)) << "others are";
    now += 1;
  }
  EXPECT_TRUE(say(mac(7), true));
}

// protocol: 11.12
TEST_F(KeyGuesses, any_number_of_addresses_makes_64_guesses_a_second) {
  for (unsigned i = 0; i < 100'000; ++i) {
    now += 10 * kMicrosecond;
    say(mac(1'000 + i), false);
  }
  EXPECT_LE(b.count(Counter::kBadKey), 2 * KeyGuard::kGuessesAtPort);
  EXPECT_GE(b.count(Counter::kBadKey), KeyGuard::kGuessesAtPort);
  EXPECT_EQ(b.count(Counter::kBadKey) + b.count(Counter::kKeyGuesses), 100'000U);
}

// protocol: 11.13
TEST_F(KeyGuesses, who_has_named_the_key_before_is_heard_whatever_others_do) {
  for (unsigned i = 0; i < 50; ++i) EXPECT_TRUE(say(mac(i), true));
  for (unsigned i = 0; i < 10'000; ++i) say(mac(i % 50 == 0 ? 7 : 1'000 + i), false);
  for (unsigned i = 0; i < 50; ++i) EXPECT_TRUE(say(mac(i), true)) << i;
  EXPECT_FALSE(say(mac(7), true, 6)) << "as the one who it was, with its Port";
  now += KeyGuard::kLongestWait;
  EXPECT_TRUE(say(mac(7), true, 6)) << "nobody guesses any more";
}

// The Port of a connection has no such state, because the peer's address and Port must match too.
// protocol: 5.18, 11.12
TEST_F(KeyGuesses, the_peer_of_a_connection_is_not_shut_out_by_who_guesses_its_key) {
  connect();
  VcInfo info{};
  ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kNoOperation);
  h.d_port = info.local_port;
  h.s_port = info.remote_port;
  for (h.d_key = info.local_key + 1; h.d_key != info.local_key + 1'000; ++h.d_key)
    inject(b, kMacA, h);
  EXPECT_EQ(b.count(Counter::kBadKey), 999U);
  put(a, ca, control(Op::kNoOperation));
  settle();
  EXPECT_TRUE(get(cb));
}

}  // namespace
}  // namespace stp::test
