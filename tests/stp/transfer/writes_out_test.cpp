// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/writes_out.h"

#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

namespace flag = wire::flag;

class WritesOutTest : public Parts {
 protected:
  static constexpr std::uint16_t kBlocksize = 12;
  static constexpr std::uint32_t kTheirId = 900;

  WritesOut writes{config, clock, ids, outbox, completions, repeats, endings};

  std::uint32_t offer(std::uint64_t length, Context context = 1) {
    writes.write(context, {}, length, {.tag = 7});
    return next_is<wire::RequestToSend>().i_id;
  }
  void grant(std::uint32_t i_id, std::uint32_t b_num, std::uint32_t f_offset = 0,
             const wire::MissingStus* missing = nullptr) {
    writes.on_grant({.blocksize = kBlocksize,
                     .r_mx = 3,
                     .r_bufx = 1,
                     .f_offset = f_offset,
                     .b_num = b_num,
                     .i_id = i_id,
                     .r_id = kTheirId},
                    missing);
  }
  bool state(std::uint32_t i_id, std::uint32_t b_seq, bool refused = false) {
    return writes.on_state({.b_seq = b_seq, .i_id = i_id, .r_id = kTheirId}, refused);
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    writes.expire();
    repeats.end_round();
  }
};

// protocol: 9.42
TEST_F(WritesOutTest, asks_about_the_last_blocks_and_about_what_is_sent_again) {
  const auto i_id = offer(6 * 4'096);
  for (std::uint32_t b_num = 0; b_num < 6; ++b_num) {
    grant(i_id, b_num);
    const auto block = next_entry();
    ASSERT_TRUE(block);
    EXPECT_EQ(block->header.has(flag::kSendState), b_num >= 2) << b_num;
  }
  taken();
  grant(i_id, 1);
  const auto again = next_entry();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->header.has(flag::kSendState)) << "no CTS needs to follow it";
}

// protocol: 9.2, 9.7
TEST_F(WritesOutTest, sends_what_is_granted_and_completes_when_the_peer_has_all) {
  const auto i_id = offer(6'000);
  grant(i_id, 0);
  const auto first = next_entry();
  ASSERT_TRUE(first && first->header.op() == Op::kData);
  EXPECT_EQ(first->length, 4'096U);
  EXPECT_TRUE(first->header.has(flag::kSendState));
  grant(i_id, 1);
  const auto second = next_entry();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->length, 6'000U - 4'096U);
  EXPECT_EQ(second->offset, 4'096U);
  const auto data = wire::decode_as<wire::Data>(second->header);
  EXPECT_EQ(data.b_num, 1U);
  EXPECT_EQ(data.r_mx, 3U);
  EXPECT_EQ(data.opaque, 7U);
  EXPECT_TRUE(state(i_id, 1));
  EXPECT_FALSE(completion());
  EXPECT_TRUE(state(i_id, 2));
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->kind, Kind::kWrite);
  EXPECT_EQ(done->length, 6'000U);
  EXPECT_EQ(done->status, 0);
  EXPECT_EQ(done->message, 1U);
  EXPECT_EQ(writes.outstanding(), 0U);
  EXPECT_FALSE(state(i_id, 2)) << "it is none of ours any more";
}

TEST_F(WritesOutTest, ignores_grants_that_cannot_be) {
  const auto i_id = offer(6'000);
  grant(i_id + 1, 0);
  grant(i_id, 2);
  EXPECT_FALSE(next()) << "another Transfer; a Block that it does not have";
  grant(i_id, 0);
  EXPECT_TRUE(next());
  writes.on_grant({.blocksize = kBlocksize + 1, .b_num = 1, .i_id = i_id, .r_id = kTheirId});
  writes.on_grant({.blocksize = kBlocksize, .b_num = 1, .i_id = i_id, .r_id = kTheirId + 1});
  grant(i_id, 1, 6'000);
  EXPECT_FALSE(next()) << "another Block size; another id; a place behind the Block";
}

// protocol: 10.15
TEST_F(WritesOutTest, does_not_repeat_what_the_node_has_not_taken) {
  const auto i_id = offer(4'096);
  grant(i_id, 0);
  ASSERT_TRUE(next());
  grant(i_id, 0);
  grant(i_id, 0, 2'048);
  EXPECT_FALSE(next());
}

// protocol: 13.22
TEST_F(WritesOutTest, routers_may_mark_what_is_sent_for_the_first_time) {
  const auto i_id = offer(4'096);
  grant(i_id, 0);
  const auto first = next_entry();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->may_be_marked, 1);
  taken();
  grant(i_id, 0);
  const auto again = next_entry();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->may_be_marked, 0);
}

// protocol: 9.5, 10.15
TEST_F(WritesOutTest, repeats_from_the_first_missing_byte) {
  const auto i_id = offer(4'096);
  grant(i_id, 0);
  node_takes();
  grant(i_id, 0, 2'048);
  EXPECT_EQ(next_is<wire::Data>().r_offset, 2'048U);
  grant(i_id, 0);
  EXPECT_EQ(next_is<wire::Data>().r_offset, 0U)
      << "the tail that waits does not serve for the beginning";
}

// protocol: 10.23
TEST_F(WritesOutTest, repeats_only_what_is_missing) {
  config.send_stu_log2 = 8;
  const auto i_id = offer(4'096);
  grant(i_id, 0);
  node_takes();
  wire::MissingStus missing;  // of STUs 2 to 15
  for (const auto number : {2, 5, 6, 15}) missing.add(static_cast<std::uint32_t>(number - 2));
  grant(i_id, 0, 2 * 256, &missing);
  struct Part {
    std::uint32_t first, stus;
  };
  std::uint32_t sync = 0;
  for (const auto part : {Part{2, 1}, Part{5, 2}, Part{15, 1}}) {
    const auto sent = next_entry();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->header.offset, part.first * 256);
    EXPECT_EQ(sent->offset, part.first * 256) << "the bytes of the same place";
    EXPECT_EQ(sent->length, part.stus * 256);
    const bool to_end = part.first == 15;
    EXPECT_EQ(sent->limited, to_end ? 0 : 1) << "Last stands on the end of the Block only";
    EXPECT_EQ(sent->header.has(flag::kSendState), to_end);
    if (sync != 0) {
      EXPECT_EQ(sent->header.sync, sync) << "they are one sending";
    }
    sync = sent->header.sync;
  }
  EXPECT_FALSE(next());
  grant(i_id, 0, 2 * 256, &missing);
  EXPECT_FALSE(next()) << "it has not left yet (10.15)";
}

// protocol: 10.23
TEST_F(WritesOutTest, sends_no_more_than_the_block_whatever_is_said_to_be_missing) {
  config.send_stu_log2 = 8;
  const auto i_id = offer(4'096);
  wire::MissingStus all, none;
  for (std::uint32_t i = 0; i < wire::MissingStus::kMost; ++i) all.add(i);
  grant(i_id, 0, 0, &none);
  auto sent = next_entry();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->length, 4'096U) << "nothing can be missing of what is granted first";
  taken();
  grant(i_id, 0, 0, &none);
  EXPECT_FALSE(next());
  grant(i_id, 0, 100, &all);
  sent = next_entry();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->offset, 0U);
  EXPECT_EQ(sent->length, 4'096U);
  EXPECT_EQ(sent->limited, 0);
  EXPECT_FALSE(next());
}

// protocol: 13.19
TEST_F(WritesOutTest, sends_a_block_in_the_parts_that_are_asked_for) {
  config.send_stu_log2 = 8;
  const auto i_id = offer(2 * 4'096);
  wire::MissingStus four;
  for (std::uint32_t i = 0; i < 4; ++i) four.add(i);
  std::uint32_t sync = 0;
  for (std::uint32_t first = 0; first < 16; first += 4) {
    grant(i_id, 0, first * 256, &four);
    const auto sent = next_entry();
    ASSERT_TRUE(sent) << first;
    EXPECT_EQ(sent->header.offset, first * 256);
    EXPECT_EQ(sent->offset, first * 256);
    EXPECT_EQ(sent->length, 4U * 256);
    EXPECT_EQ(sent->limited, first == 12 ? 0 : 1) << "Last stands on the end of the Block only";
    EXPECT_NE(sent->header.sync, sync);
    sync = sent->header.sync;
    EXPECT_FALSE(next());
  }
  taken();
  grant(i_id, 0, 4 * 256, &four);
  EXPECT_EQ(next_is<wire::Data>().r_offset, 4U * 256) << "a repeat";
  grant(i_id, 1);
  EXPECT_EQ(next_entry()->length, 4'096U) << "a whole Block";
}

// A peer that asks for no new part does not keep the Write alive.
// protocol: 10.17, 13.19
TEST_F(WritesOutTest, a_part_is_progress_and_a_repeat_of_it_is_none) {
  config.send_stu_log2 = 8;
  const auto i_id = offer(4'096);
  wire::MissingStus one;
  one.add(0);
  grant(i_id, 0, 0, &one);
  node_takes();
  pass(20 * kSecond);
  grant(i_id, 0, 256, &one);
  node_takes();
  const auto progress = clock.now();
  while (writes.outstanding() > 0 && clock.now() < progress + 100 * kSecond) {
    pass(kSecond);
    grant(i_id, 0, 256, &one);
    grant(i_id, 0, 4'096, &one);
    expire();
    node_takes();
  }
  EXPECT_GE(clock.now(), progress + kProgressPatience);
  EXPECT_LE(clock.now(), progress + kProgressPatience + kSecond);
}

// protocol: 10.23
TEST_F(WritesOutTest, a_peer_that_asks_for_every_other_stu_gets_few_parts_at_a_time) {
  config.send_stu_log2 = 8;
  config.max_block = 16;
  const auto i_id = offer(65'536);
  const wire::ClearToSend cts{
      .blocksize = 16, .r_mx = 3, .r_bufx = 1, .i_id = i_id, .r_id = kTheirId};
  writes.on_grant(cts);
  node_takes();
  wire::MissingStus every_other;
  for (std::uint32_t i = 0; i < wire::MissingStus::kMost; i += 2) every_other.add(i);
  writes.on_grant(cts, &every_other);
  EXPECT_EQ(node_takes().size(), 32U);
  while (!outbox.crowded()) outbox.add(wire::to_header(wire::NoOperation{}));
  writes.on_grant(cts, &every_other);
  std::size_t parts = 0;
  for (const auto op : node_takes()) parts += op == Op::kData ? 1 : 0;
  EXPECT_EQ(parts, 1U) << "while many requests wait";
}

// The place differs each time, so it is not what already waits (10.15).
// protocol: 10.23
TEST_F(WritesOutTest, a_peer_that_repeats_cts_without_end_makes_nothing_wait_without_end) {
  config.max_block = 16;
  const auto i_id = offer(65'536);
  wire::ClearToSend cts{.blocksize = 16, .r_mx = 3, .i_id = i_id, .r_id = kTheirId};
  for (; cts.r_bufx < 20'000; ++cts.r_bufx) writes.on_grant(cts);
  EXPECT_LE(node_takes().size(), 1'025U);
  writes.on_grant(cts);
  EXPECT_EQ(node_takes().size(), 1U) << "it is answered again when the Node has taken the others";
}

// protocol: 9.4
TEST_F(WritesOutTest, a_peer_that_grants_byte_by_byte_makes_no_more_wait_than_an_honest_one_could) {
  const auto i_id = offer(20'000);
  wire::ClearToSend cts{.blocksize = 0, .r_mx = 3, .r_bufx = 1, .i_id = i_id, .r_id = kTheirId};
  for (; cts.b_num < 20'000; ++cts.b_num) writes.on_grant(cts);
  EXPECT_LE(node_takes().size(), 8'193U);
  cts.b_num = 10'000;
  writes.on_grant(cts);
  EXPECT_EQ(node_takes().size(), 1U) << "as if the CTS had been lost before";
}

// protocol: 9.17
TEST_F(WritesOutTest, completes_when_the_peer_refuses) {
  const auto i_id = offer(100);
  writes.on_answer({.i_id = i_id}, true);
  EXPECT_EQ(completion()->status, -ECONNREFUSED);
  EXPECT_EQ(writes.outstanding(), 0U);
}

// protocol: 10.16
TEST_F(WritesOutTest, completes_when_the_peer_no_longer_knows_it) {
  const auto i_id = offer(100);
  grant(i_id, 0);
  EXPECT_TRUE(state(i_id, 0, true));
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_FALSE(next()) << "its DATA is not sent";
}

// protocol: 9.18
TEST_F(WritesOutTest, ends_when_either_side_wants_it) {
  const auto first = offer(100, 1), second = offer(100, 2);
  EXPECT_FALSE(writes.cancel(3));
  EXPECT_TRUE(writes.cancel(1));
  EXPECT_EQ(next_is<wire::End>().i_id, first);
  endings.on_end_ack({.i_id = first});
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_FALSE(writes.on_end({.r_id = first, .i_id = kTheirId}));
  EXPECT_TRUE(writes.on_end({.r_id = second, .i_id = kTheirId}));
  EXPECT_EQ(completion()->context, 2U);
}

// protocol: 9.20
TEST_F(WritesOutTest, of_a_read_ends_by_the_name_of_the_read) {
  writes.serve(55, 1, {}, 100);
  EXPECT_EQ(next_is<wire::RequestToSend>().rtr_i_id, 55U);
  EXPECT_TRUE(writes.on_end({.r_id = wire::kNoId, .i_id = 55}));
  EXPECT_EQ(completion()->kind, Kind::kServe);
}

TEST_F(WritesOutTest, numbers_messages_and_not_answers) {
  offer(100);
  writes.serve(55, 2, {}, 100);
  EXPECT_EQ(writes.take_message(), 2U);
}

// protocol: 10.7
TEST_F(WritesOutTest, asks_for_the_state_of_what_it_has_sent) {
  const auto i_id = offer(100);
  grant(i_id, 0);
  node_takes();
  pass(clock.deadline() - clock.now());
  expire();
  const auto rs = next_is<wire::RequestState>();
  EXPECT_EQ(rs.r_id, kTheirId);
  EXPECT_EQ(rs.i_id, i_id);
}

// protocol: 10.17
TEST_F(WritesOutTest, gives_up_when_the_peer_makes_no_progress) {
  const auto i_id = offer(100);
  grant(i_id, 0);
  node_takes();
  const auto begun = clock.now();
  while (writes.outstanding() > 0 && clock.now() < begun + 100 * kSecond) {
    state(i_id, 0);  // the peer is alive
    node_takes();
    pass(clock.deadline() - clock.now());
    expire();
  }
  EXPECT_EQ(writes.outstanding(), 0U);
  EXPECT_LE(clock.now(), begun + kProgressPatience + kSecond);
}

// protocol: 10.17
TEST_F(WritesOutTest, that_share_a_path_wait_for_each_other) {
  for (const bool shared : {false, true}) {
    writes.want(4, shared);
    const auto first = offer(10'000), second = offer(10'000);
    grant(first, 0);
    grant(second, 0);
    node_takes();
    for (std::uint32_t b_seq = 0; b_seq < 2; ++b_seq) {
      pass(kProgressPatience - kSecond);
      state(first, b_seq + 1);
      state(second, 0);
      expire();
      node_takes();
    }
    EXPECT_EQ(writes.outstanding(), shared ? 2U : 1U);
    writes.fail(-ECANCELED);
  }
}

TEST_F(WritesOutTest, completes_when_the_connection_ends) {
  offer(100);
  writes.fail(-ENOTCONN);
  EXPECT_EQ(completion()->status, -ENOTCONN);
  EXPECT_EQ(writes.outstanding(), 0U);
}

}  // namespace
}  // namespace stp::test
