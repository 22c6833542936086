// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/writes_in.h"

#include "stp/transfer/patience.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test::writes_in_test {
namespace {

constexpr Landing kLanding{3, {2, 100}, 50'000};
constexpr std::uint32_t kTheirId = 900, kOurId = 8;

class WritesInTest : public Parts {
 protected:
  WritesIn writes{config, clock, outbox, completions, endings, finished};

  void begin(std::uint64_t length, std::uint32_t window = 2) {
    const OfferedWrite offer{.i_id = kTheirId,
                             .r_id = kOurId,
                             .msn = 5,
                             .length = length,
                             .max_block = 12,
                             .cts_wanted = window};
    writes.begin(offer, Kind::kReceive, 1, kLanding);
  }
  static ReceivedEntry block(const wire::ClearToSend& cts, std::uint32_t tag = 0) {
    return received(wire::Data{.r_mx = cts.r_mx,
                               .r_bufx = cts.r_bufx,
                               .r_offset = cts.r_offset,
                               .b_num = cts.b_num,
                               .r_id = cts.r_id,
                               .opaque = tag});
  }
};

// protocol: 9.3, 9.25, 9.26
TEST_F(WritesInTest, grants_a_window_and_completes_with_the_last_block) {
  begin(10'000);
  const auto first = next_entry();
  ASSERT_TRUE(first && first->header.op() == Op::kClearToSend);
  EXPECT_EQ(first->limited, 1U);
  EXPECT_EQ(first->length, 4'096U);
  const auto zero = wire::decode_as<wire::ClearToSend>(first->header);
  EXPECT_EQ(zero.blocksize, 12U);
  const auto one = next_is<wire::ClearToSend>();
  EXPECT_EQ(one.r_offset, kLanding.at.offset + 4'096);
  EXPECT_FALSE(next()) << "the window is full";
  EXPECT_TRUE(writes.on_block(block(one)));
  const auto last = next_entry();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->length, 10'000U - 2 * 4'096U) << "never more than the write has";
  writes.on_block(block(wire::decode_as<wire::ClearToSend>(last->header)));
  EXPECT_FALSE(completion());
  writes.on_block(block(zero, 77));
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->length, 10'000U);
  EXPECT_EQ(done->tag, 77U);
  EXPECT_EQ(done->message, 5U);
  EXPECT_EQ(writes.outstanding(), 0U);
  EXPECT_TRUE(finished.is_over(kTheirId, Op::kRequestAnswer));
}

TEST_F(WritesInTest, ignores_headers_of_blocks_that_it_did_not_grant) {
  begin(10'000);
  const auto cts = next_is<wire::ClearToSend>();
  auto elsewhere = cts;
  elsewhere.r_offset += 1;
  EXPECT_TRUE(writes.on_block(block(elsewhere)));
  auto other = cts;
  other.r_id = kOurId + 1;
  EXPECT_FALSE(writes.on_block(block(other))) << "it is of something else";
  next();
  writes.on_block(block(cts));
  EXPECT_TRUE(next());
  writes.on_block(block(cts));
  EXPECT_FALSE(next()) << "the same Block again";
}

// protocol: 9.24
TEST_F(WritesInTest, tells_a_peer_that_repeats_its_rts_that_it_is_known) {
  begin(100);
  next();
  EXPECT_FALSE(writes.repeats(kTheirId + 1));
  EXPECT_TRUE(writes.repeats(kTheirId));
  EXPECT_EQ(next_is<wire::RequestAnswer>().r_id, kOurId);
}

// protocol: 9.18
TEST_F(WritesInTest, returns_memory_when_the_node_has_taken_the_end) {
  begin(100);
  ASSERT_TRUE(writes.cancel(1));
  EXPECT_FALSE(completion()) << "the peer may still write";
  EXPECT_EQ(node_takes(), (std::vector<Op>{Op::kClearToSend, Op::kEnd}));
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_FALSE(writes.cancel(1));
}

// protocol: 9.20
TEST_F(WritesInTest, ends_by_either_name) {
  begin(100);
  EXPECT_TRUE(writes.knows(kOurId, kTheirId));
  EXPECT_EQ(writes.find(kTheirId), kOurId);
  EXPECT_FALSE(writes.on_end({.r_id = kOurId + 1, .i_id = kTheirId}));
  EXPECT_TRUE(writes.on_end({.r_id = wire::kNoId, .i_id = kTheirId}));
  node_takes();
  EXPECT_EQ(completion()->status, -ECANCELED);
}

// protocol: 10.17
TEST_F(WritesInTest, gives_up_when_nothing_arrives) {
  begin(10'000);
  const auto cts = next_is<wire::ClearToSend>();
  pass(kProgressPatience - 1);
  writes.on_block(block(cts));
  pass(kProgressPatience - 1);
  writes.expire();
  EXPECT_EQ(writes.outstanding(), 1U) << "a Block came in between";
  pass(1);
  writes.expire();
  EXPECT_EQ(writes.outstanding(), 0U);
  node_takes();
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
}

// protocol: 10.10
TEST_F(WritesInTest, makes_blocks_short_when_much_is_lost) {
  config.max_block = 20;
  const OfferedWrite offer{
      .i_id = kTheirId, .r_id = kOurId, .length = 50'000, .max_block = 20, .cts_wanted = 1};
  writes.begin(offer, Kind::kReceive, 1, kLanding);
  const auto cts = next_is<wire::ClearToSend>();
  EXPECT_EQ(cts.blocksize, 16U) << "all in one Block";
  writes.observe_loss(50, 0);
  writes.on_block(block(cts));
  writes.begin(offer, Kind::kReceive, 1, kLanding);
  EXPECT_EQ(next_is<wire::ClearToSend>().blocksize, config.receive_stu_log2) << "one STU";
}

// protocol: 13.13
TEST_F(WritesInTest, grants_many_short_blocks_while_the_path_suits_them) {
  config.cts_window = 4;
  writes.observe_loss(0, 10);
  begin(50'000, 100);
  EXPECT_EQ(next_is<wire::ClearToSend>().blocksize, 10U);
  for (unsigned i = 1; i < 49; ++i) ASSERT_TRUE(next());
  writes.observe_loss(0, 0);
  EXPECT_EQ(writes.cts_window(), 4U) << "it is not known any more that others use the path";
}

TEST_F(WritesInTest, completes_when_the_connection_ends) {
  begin(100);
  writes.fail(-ENOTCONN);
  EXPECT_EQ(completion()->status, -ENOTCONN);
}

}  // namespace
}  // namespace stp::test::writes_in_test
