// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/asks_out.h"

#include "stp/transfer/patience.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test::asks_out_test {
namespace {

constexpr std::uint32_t kTheirId = 900;

class AsksOutTest : public Parts {
 protected:
  Puts puts{config, clock, outbox, completions, repeats, endings};
  AsksOut asks{clock, ids, outbox, completions, repeats, endings, puts};

  std::uint32_t read(Context context = 1) {
    EXPECT_EQ(asks.read(context, {3, {2, 0}, 100}), 0);
    return next_is<wire::RequestToReceive>().i_id;
  }
  std::uint32_t region(Context context = 1) {
    EXPECT_EQ(asks.request_region(context, 1'000, 4, 0), 0);
    return next_is<wire::RequestMemoryRegion>().i_id;
  }
  void open(std::uint32_t i_id, std::uint64_t length = 1'000, std::uint16_t flags = 0) {
    asks.on_region(received(
        wire::MemoryRegionAvailable{
            .b_win = 4, .r_mx = 3, .t_len = length, .i_id = i_id, .r_id = kTheirId},
        flags));
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    asks.expire();
    repeats.end_round();
  }
};

// protocol: 9.9
TEST_F(AsksOutTest, a_read_goes_on_as_a_transfer_of_the_same_length) {
  const auto i_id = read();
  EXPECT_TRUE(asks.on_answer({.i_id = i_id}, false));
  EXPECT_FALSE(asks.take_read(i_id, 99));
  EXPECT_FALSE(asks.take_read(i_id + 1, 100));
  const auto found = asks.take_read(i_id, 100);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->context, 1U);
  EXPECT_EQ(found->landing.at.bufx, 2U);
  EXPECT_EQ(asks.outstanding(), 0U);
  EXPECT_FALSE(completion());
}

// protocol: 9.17
TEST_F(AsksOutTest, a_read_may_be_refused) {
  const auto i_id = read();
  EXPECT_FALSE(asks.on_answer({.i_id = i_id + 1}, true)) << "it answers something else";
  EXPECT_TRUE(asks.on_answer({.i_id = i_id}, true));
  EXPECT_EQ(completion()->status, -ECONNREFUSED);
}

TEST_F(AsksOutTest, a_region_is_open_for_puts) {
  open(region());
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, 0);
  EXPECT_EQ(done->region.r_id, kTheirId);
  EXPECT_EQ(done->region.window, 4U);
  EXPECT_TRUE(puts.is_open(kTheirId));
}

// protocol: 9.1, 9.17
TEST_F(AsksOutTest, a_region_may_be_refused_or_be_none) {
  open(region(1), 1'000, wire::flag::kReject);
  open(region(2), 999);
  EXPECT_FALSE(puts.is_open(kTheirId));
  open(region(3));
  open(region(4));
  std::vector<int> statuses;
  while (const auto c = completion()) statuses.push_back(c->status);
  EXPECT_EQ(statuses, (std::vector<int>{-ECONNREFUSED, -ECONNREFUSED, 0, -ECONNREFUSED}))
      << "refused, too short, open, an id that is in use";
}

TEST_F(AsksOutTest, takes_no_answer_to_a_read_for_a_region) {
  open(read());
  EXPECT_FALSE(asks.take_read(region(), 1'000));
  EXPECT_EQ(asks.outstanding(), 2U);
}

TEST_F(AsksOutTest, refuses_what_cannot_be) {
  EXPECT_EQ(asks.read(1, {3, {2, 0}, 0}), -EINVAL);
  EXPECT_EQ(asks.request_region(1, 0, 4, 0), -EINVAL);
  EXPECT_EQ(asks.request_region(1, 100, 0, 0), -EINVAL);
  EXPECT_EQ(asks.request_region(1, 100, kMaxPutWindow + 1, 0), -EINVAL);
  EXPECT_EQ(asks.outstanding(), 0U);
}

// protocol: 9.18
TEST_F(AsksOutTest, takes_a_request_back) {
  const auto i_id = region();
  EXPECT_FALSE(asks.cancel(2));
  EXPECT_TRUE(asks.cancel(1));
  const auto end = next_is<wire::End>();
  EXPECT_EQ(end.i_id, i_id);
  EXPECT_EQ(end.r_id, wire::kNoId) << "the peer has not told its id";
  endings.on_end_ack({.i_id = i_id});
  EXPECT_EQ(completion()->kind, Kind::kRegion);
}

// protocol: 10.11
TEST_F(AsksOutTest, repeats_what_was_seen_and_gives_up_after_a_while) {
  read();
  unsigned repeated = 0;
  const auto begun = clock.now();
  while (asks.outstanding() > 0 && clock.now() < begun + 200 * kSecond) {
    while (const auto header = next()) {
      repeated += header->op() == Op::kRequestToReceive;
      if (header->op() != Op::kRequestState) continue;
      taken();
      repeats.on_slots(
          {.r_slots = kSlots, .sync = wire::decode_as<wire::RequestState>(*header).sync});
    }
    taken();
    pass(clock.deadline() - clock.now());
    expire();
  }
  EXPECT_EQ(asks.outstanding(), 0U);
  EXPECT_GE(repeated, 5U);
  EXPECT_GE(clock.now(), begun + kUserPatience);
}

TEST_F(AsksOutTest, completes_when_the_connection_ends) {
  read(1);
  region(2);
  asks.fail(-ENOTCONN);
  EXPECT_EQ(completion()->kind, Kind::kRead);
  EXPECT_EQ(completion()->kind, Kind::kRegion);
}

}  // namespace
}  // namespace stp::test::asks_out_test
