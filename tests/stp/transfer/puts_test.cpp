// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/puts.h"

#include "stp/transfer/clock.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test::puts_test {
namespace {

constexpr RemoteRegion kRegion{.r_id = 900, .mx = 3, .at = {1, 0}, .length = 100'000, .window = 4};
constexpr std::uint32_t kOurId = 5;

class PutsTest : public Parts {
 protected:
  Puts puts{config, clock, outbox, completions, repeats, endings};

  void SetUp() override { puts.open(kOurId, kRegion); }
  void put(Context context, std::uint64_t length = 8, PutOptions options = {}) {
    EXPECT_EQ(puts.put(context, kRegion, 0, {}, length, options), 0);
  }
  // The peer's RSR: all Blocks before `b_seq` have arrived. `sync`: of the RS or DATA it answers.
  void state(std::uint32_t b_seq, std::uint32_t sync = 0) {
    puts.on_state({.b_seq = b_seq, .sync = sync, .i_id = kOurId, .r_id = kRegion.r_id}, false);
  }
  std::vector<Context> done() {
    std::vector<Context> all;
    while (const auto c = completion())
      if (c->kind == Kind::kPut) all.push_back(c->context);
    return all;
  }
  std::vector<std::uint32_t> blocks() {
    std::vector<std::uint32_t> all;
    while (const auto header = next())
      if (header->op() == Op::kData) all.push_back(wire::decode_as<wire::Data>(*header).b_num);
    taken();
    return all;
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    puts.expire();
    repeats.end_round();
  }
};

// protocol: 9.10, 9.11
TEST_F(PutsTest, send_as_many_blocks_as_the_window_holds) {
  for (Context i = 0; i < 6; ++i) put(i);
  EXPECT_EQ(blocks(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  state(3);
  EXPECT_EQ(done(), (std::vector<Context>{0, 1, 2}));
  EXPECT_EQ(blocks(), (std::vector<std::uint32_t>{4, 5}));
  EXPECT_NE(clock.deadline(), kNever);
  state(6);
  EXPECT_EQ(done(), (std::vector<Context>{3, 4, 5}));
  EXPECT_EQ(clock.deadline(), kNever) << "nothing is on its way, so no time concerns the Puts";
  EXPECT_EQ(puts.outstanding(), 0U);
}

TEST_F(PutsTest, of_several_blocks_complete_with_the_last_one) {
  put(1, 10'000);
  EXPECT_EQ(blocks(), (std::vector<std::uint32_t>{0, 1, 2}));
  state(2);
  EXPECT_FALSE(completion());
  state(3);
  const auto c = completion();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->length, 10'000U);
}

TEST_F(PutsTest, ignore_answers_about_blocks_that_were_not_sent) {
  put(1);
  state(2);
  state(0xffff'ffff);
  EXPECT_FALSE(completion());
  puts.on_state({.b_seq = 1, .i_id = kOurId + 1, .r_id = kRegion.r_id}, false);
  EXPECT_FALSE(completion()) << "another region";
}

TEST_F(PutsTest, outside_of_the_region_or_into_none_are_refused) {
  EXPECT_EQ(puts.put(1, kRegion, 100'000, {}, 1, {}), -EINVAL);
  EXPECT_EQ(puts.put(1, kRegion, 100'001, {}, 0, {}), -EINVAL);
  auto other = kRegion;
  other.r_id = 901;
  EXPECT_EQ(puts.put(1, other, 0, {}, 1, {}), -EACCES);
  EXPECT_EQ(puts.close(901), -EACCES);
  EXPECT_EQ(puts.outstanding(), 0U);
}

// protocol: 9.36
TEST_F(PutsTest, are_asked_about_and_then_repeated_if_they_are_lost) {
  put(1);
  node_takes();
  pass(clock.deadline() - clock.now());
  expire();
  const auto rs = next_is<wire::RequestState>();
  EXPECT_EQ(rs.r_id, kRegion.r_id);
  state(0, rs.sync + 1);
  EXPECT_EQ(blocks(), std::vector<std::uint32_t>{}) << "an answer to another question";
  state(0, rs.sync);
  EXPECT_EQ(blocks(), std::vector<std::uint32_t>{0});
  state(0, rs.sync);
  EXPECT_EQ(blocks(), std::vector<std::uint32_t>{}) << "the same answer again";
}

// protocol: 9.27
TEST_F(PutsTest, complete_when_the_peer_tells_of_them_and_not_before_they_are_sent) {
  for (Context i = 0; i < 6; ++i) put(i);
  EXPECT_EQ(blocks().size(), kRegion.window);
  puts.arrived(kRegion.r_id, kRegion.window + 1);
  puts.arrived(kRegion.r_id, 0);
  puts.arrived(kRegion.r_id + 1, 1);
  puts.arrived(kRegion.r_id, 0xffff'ffff);
  EXPECT_EQ(done(), std::vector<Context>{});
  puts.arrived(kRegion.r_id, 3);
  EXPECT_EQ(done(), (std::vector<Context>{0, 1, 2}));
  EXPECT_EQ(blocks(), (std::vector<std::uint32_t>{4, 5})) << "there is room in the window";
  state(2);
  EXPECT_EQ(done(), std::vector<Context>{}) << "an older word";
  state(6);
  EXPECT_EQ(done(), (std::vector<Context>{3, 4, 5}));
  EXPECT_EQ(clock.deadline(), kNever);
}

// protocol: 9.27
TEST_F(PutsTest, that_are_quiet_are_asked_about_within_a_millisecond) {
  auto wide = kRegion;
  wide.r_id = 901;
  wide.window = 64;
  puts.open(kOurId + 1, wide);
  ASSERT_EQ(puts.put(1, wide, 0, {}, 8, {.quiet = true}), 0);
  EXPECT_EQ(clock.deadline(), clock.now() + kMillisecond);
  node_takes();
  pass(kMillisecond);
  expire();
  EXPECT_EQ(next_is<wire::RequestState>().r_id, 901U);
}

// protocol: 10.17
TEST_F(PutsTest, that_make_no_progress_end_their_region) {
  put(1);
  const auto begun = clock.now();
  while (puts.is_open(kRegion.r_id) && clock.now() < begun + 100 * kSecond) {
    while (const auto header = next()) {
      taken();
      if (header->op() == Op::kRequestState)
        state(0, wire::decode_as<wire::RequestState>(*header).sync);  // the peer is alive
    }
    taken();
    pass(clock.deadline() - clock.now());
    expire();
  }
  EXPECT_GE(clock.now(), begun + kProgressPatience);
  EXPECT_LE(clock.now(), begun + kProgressPatience + kSecond);
  EXPECT_FALSE(completion()) << "the peer has the region until it sees the END";
  node_takes();
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
  EXPECT_EQ(completion()->kind, Kind::kRevoked);
}

TEST_F(PutsTest, into_a_region_that_its_owner_takes_back_complete) {
  put(1);
  EXPECT_FALSE(puts.on_end({.r_id = kOurId + 1, .i_id = kRegion.r_id}));
  EXPECT_TRUE(puts.on_end({.r_id = kOurId, .i_id = kRegion.r_id}));
  EXPECT_FALSE(next()) << "nothing is sent into it any more";
  EXPECT_EQ(completion()->status, -ECANCELED);
  const auto revoked = completion();
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->region.r_id, kRegion.r_id);
  EXPECT_EQ(puts.put(2, kRegion, 0, {}, 8, {}), -EACCES);
}

TEST_F(PutsTest, that_have_not_been_sent_are_cancelled_at_once) {
  for (Context i = 0; i < 6; ++i) put(i);
  EXPECT_FALSE(puts.cancel(7));
  EXPECT_TRUE(puts.cancel(5));
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_TRUE(puts.cancel(0)) << "it has been sent, and goes on";
  EXPECT_FALSE(completion());
  state(4);
  EXPECT_EQ(completion()->status, 0);
}

TEST_F(PutsTest, complete_when_the_connection_ends) {
  put(1, 10'000);
  puts.fail(-ENOTCONN);
  EXPECT_EQ(completion()->status, -ENOTCONN);
  EXPECT_FALSE(completion()) << "once for each put";
}

}  // namespace
}  // namespace stp::test::puts_test
