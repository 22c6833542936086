// SPDX-License-Identifier: BSD-3-Clause
// The managed layer: every sequence, also over a wire that loses and duplicates frames (sections 9
// and 10).
#include "tests/stp/transfer/managed_pair.h"

namespace stp::test {
namespace {

using Kind = Completion::Kind;
using wire::Function;
using wire::Op;
namespace flag = wire::flag;

// protocol: 9.2, 9.26
TEST_F(Managed, a_write_fills_the_receive_that_was_posted) {
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 1'000, 300'000)), 0);
  ASSERT_EQ(sa.sequencer->write(5, at(77), 200'000, {.tag = 0x1234}), 0);
  run(50 * kMillisecond);
  const auto* const sent = sa.find(Kind::kWrite, 5);
  const auto* const received = sb.find(Kind::kReceive, 7);
  ASSERT_TRUE(sent && received);
  EXPECT_EQ(sent->status, 0);
  EXPECT_EQ(received->status, 0);
  EXPECT_EQ(received->length, 200'000U);
  EXPECT_EQ(received->tag, 0x1234U);
  EXPECT_TRUE(landed(sa, sb, 77, 1'000, 200'000));
  EXPECT_EQ(sa.sequencer->outstanding() + sb.sequencer->outstanding(), 0U);
}

// protocol: 9.24
TEST_F(Managed, a_write_waits_until_a_receive_is_posted) {
  ASSERT_EQ(sa.sequencer->write(5, at(0), 10'000), 0);
  run(3 * kSecond);
  EXPECT_EQ(sa.find(Kind::kWrite, 5), nullptr);
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, 10'000)), 0);
  run(50 * kMillisecond);
  EXPECT_TRUE(sa.find(Kind::kWrite, 5));
  EXPECT_TRUE(landed(sa, sb, 0, 0, 10'000));
}

// protocol: 10.11
TEST_F(Managed, a_write_waits_for_its_answer_as_long_as_its_user_says) {
  ASSERT_EQ(sa.sequencer->write(5, at(0), 100), 0);
  WriteOptions options;
  options.patience = 60 * kSecond;
  ASSERT_EQ(sa.sequencer->write(6, at(0), 100, options), 0);
  const auto without_peers_user = [this](Time span) {
    for (const auto end = now + span; now < end; pass(100 * kMillisecond)) drive(a, ca, sa);
  };
  without_peers_user(45 * kSecond);
  ASSERT_TRUE(sa.find(Kind::kWrite, 5)) << "the usual patience, and that with its END";
  EXPECT_FALSE(sa.find(Kind::kWrite, 6));
  without_peers_user(45 * kSecond);
  ASSERT_TRUE(sa.find(Kind::kWrite, 6));
  EXPECT_EQ(sa.find(Kind::kWrite, 6)->status, -ETIMEDOUT);
}

// protocol: 9.8, 9.21
TEST_F(Managed, several_writes_at_once_and_empty_ones_keep_their_order_of_receives) {
  for (Context i = 0; i < 20; ++i) {
    const auto length = i % 4 == 0 ? 0 : 1'000 * i;
    ASSERT_EQ(sb.sequencer->post_receive(100 + i, landing(sb, 40'000 * i, 40'000)), 0);
    ASSERT_EQ(sa.sequencer->write(i, at(i * 13), length), 0);
  }
  run(200 * kMillisecond);
  for (Context i = 0; i < 20; ++i) {
    const auto* const received = sb.find(Kind::kReceive, 100 + i);
    ASSERT_TRUE(received) << i;
    const auto length = i % 4 == 0 ? 0 : 1'000 * i;
    EXPECT_EQ(received->length, length);
    EXPECT_TRUE(landed(sa, sb, i * 13, 40'000 * i, length));
    EXPECT_TRUE(sa.find(Kind::kWrite, i));
  }
}

// protocol: 9.17, 9.23
TEST_F(Managed, a_write_longer_than_its_receive_is_refused) {
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, 999)), 0);
  ASSERT_EQ(sa.sequencer->write(5, at(0), 1'000), 0);
  run(50 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kWrite, 5));
  EXPECT_EQ(sa.find(Kind::kWrite, 5)->status, -ECONNREFUSED);
  EXPECT_EQ(sb.find(Kind::kReceive, 7), nullptr) << "the receive waits for one that fits";
}

// protocol: 9.9, 9.17
TEST_F(Managed, a_read_is_served_or_refused_by_the_peers_user) {
  ASSERT_EQ(sa.sequencer->read(1, landing(sa, 500, 70'000)), 0);
  ASSERT_EQ(sa.sequencer->read(2, landing(sa, 100'000, 10)), 0);
  run(10 * kMillisecond);
  std::vector<Completion> asked;
  for (const auto& c : sb.completions)
    if (c.kind == Kind::kReadRequest) asked.push_back(c);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].length, 70'000U);
  ASSERT_EQ(sb.sequencer->serve_read(asked[0].request, 50, at(300), 70'000), 0);
  ASSERT_EQ(sb.sequencer->refuse(asked[1].request), 0);
  run(50 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kRead, 1));
  EXPECT_EQ(sa.find(Kind::kRead, 1)->status, 0);
  EXPECT_TRUE(landed(sb, sa, 300, 500, 70'000));
  ASSERT_TRUE(sa.find(Kind::kRead, 2));
  EXPECT_EQ(sa.find(Kind::kRead, 2)->status, -ECONNREFUSED);
  EXPECT_TRUE(sb.find(Kind::kServe, 50));
  EXPECT_EQ(sb.sequencer->refuse(asked[0].request), -ECANCELED) << "it was answered";
}

// protocol: 9.18
TEST_F(Managed, a_request_that_was_taken_back_is_none_any_more) {
  ASSERT_EQ(sa.sequencer->read(1, landing(sa, 500, 1'000)), 0);
  ASSERT_EQ(sa.sequencer->request_region(2, 1'000, 4), 0);
  run(10 * kMillisecond);
  const auto* const read = sb.find(Kind::kReadRequest);
  const auto* const region = sb.find(Kind::kRegionRequest);
  ASSERT_TRUE(read && region);
  EXPECT_EQ(sb.sequencer->serve_read(read->request, 50, at(0), 999), -EINVAL);
  ASSERT_EQ(sa.sequencer->cancel(1), 0);
  ASSERT_EQ(sa.sequencer->cancel(2), 0);
  const auto numbers = std::pair(read->request, region->request);
  run(10 * kMillisecond);
  EXPECT_EQ(sb.sequencer->serve_read(numbers.first, 50, at(0), 1'000), -ECANCELED);
  EXPECT_EQ(sb.sequencer->refuse(numbers.first), -ECANCELED);
  EXPECT_EQ(sb.sequencer->serve_region(numbers.second, landing(sb, 0, 1'000), 4), -ECANCELED);
}

// For each DATA that the Sequencer sends: whether it has Send_state.
std::vector<bool> asks_of(Sequencer& sequencer, Time now) {
  std::vector<bool> asks;
  SendEntry entry;
  while (sequencer.transmit(entry, now)) {
    EXPECT_EQ(entry.header.op(), Op::kData);
    asks.push_back(entry.header.has(flag::kSendState));
  }
  return asks;
}

// protocol: 9.27
TEST_F(Managed, of_short_puts_that_leave_together_one_in_32_asks_and_the_last) {
  const auto region = open_region(200'000, 128);
  for (Context i = 0; i < 80; ++i) ASSERT_EQ(sa.sequencer->put(i, region, 8 * i, at(8 * i), 8), 0);
  std::vector<bool> expected(80);
  expected[31] = expected[63] = expected[79] = true;
  EXPECT_EQ(asks_of(*sa.sequencer, now), expected);
}

// protocol: 9.27
TEST_F(Managed, a_put_that_is_alone_or_long_or_wakes_somebody_asks) {
  const auto region = open_region(200'000, 64);
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 8), 0);
  EXPECT_EQ(asks_of(*sa.sequencer, now), std::vector<bool>{true});
  ASSERT_EQ(sa.sequencer->put(2, region, 0, at(0), 8), 0);
  ASSERT_EQ(sa.sequencer->put(3, region, 0, at(0), 5'000), 0);
  ASSERT_EQ(sa.sequencer->put(4, region, 0, at(0), 8, {.flags = flag::kInterrupt}), 0);
  ASSERT_EQ(sa.sequencer->put(5, region, 0, at(0), 8), 0);
  EXPECT_EQ(asks_of(*sa.sequencer, now), (std::vector<bool>{true, true, true, true}));
}

// protocol: 9.27
TEST_F(Managed, puts_that_do_not_ask_complete_with_the_one_that_does) {
  const auto region = open_region(200'000, 128);
  std::size_t answers = 0;
  wire = [&](const Frame& frame, bool) -> unsigned {
    answers += parsed(frame).header.op() == Op::kRequestStateResponse;
    return 1;
  };
  for (Context i = 0; i < 80; ++i) ASSERT_EQ(sa.sequencer->put(i, region, 8 * i, at(8 * i), 8), 0);
  run(kMillisecond / 2);  // sooner than anything is asked for again
  for (Context i = 0; i < 80; ++i) EXPECT_TRUE(sa.find(Kind::kPut, i)) << i;
  EXPECT_TRUE(landed(sa, sb, 0, 0, 640));
  EXPECT_EQ(answers, 3U);
}

// protocol: 9.27
TEST_F(Managed, of_quiet_puts_one_in_a_quarter_of_the_window_asks) {
  const auto region = open_region(200'000, 16);
  std::vector<bool> asks;
  for (Context i = 0; i < 9; ++i) {
    ASSERT_EQ(sa.sequencer->put(i, region, 8 * i, at(8 * i), 8, {.quiet = true}), 0);
    asks.push_back(asks_of(*sa.sequencer, now) == std::vector<bool>{true});
  }
  EXPECT_EQ(asks, (std::vector<bool>{false, false, false, true, false, false, false, true, false}));
}

// protocol: 9.27
TEST_F(Managed, a_put_that_somebody_waits_for_asks_for_the_quiet_ones_before_it) {
  const auto region = open_region(200'000, 128);
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 8, {.quiet = true}), 0);
  ASSERT_EQ(sa.sequencer->put(2, region, 8, at(8), 8, {.quiet = true}), 0);
  ASSERT_EQ(sa.sequencer->put(3, region, 16, at(16), 8), 0);
  run(kMillisecond / 2);  // sooner than anything is asked for again
  for (Context i = 1; i <= 3; ++i) EXPECT_TRUE(sa.find(Kind::kPut, i)) << i;
  EXPECT_TRUE(landed(sa, sb, 0, 0, 24));
}

// protocol: 9.27
TEST_F(Managed, of_a_short_window_each_quiet_put_asks) {
  const auto region = open_region(200'000, 2);
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 8, {.quiet = true}), 0);
  EXPECT_EQ(asks_of(*sa.sequencer, now), std::vector<bool>{true});
}

// protocol: 9.27
TEST_F(Managed, of_long_quiet_puts_one_in_256_KiB_asks) {
  const auto region = open_region(200'000, 128);
  std::vector<bool> asks;
  for (Context i = 0; i < 9; ++i) {
    ASSERT_EQ(sa.sequencer->put(i, region, 0, at(0), 65'536, {.quiet = true}), 0);
    asks.push_back(asks_of(*sa.sequencer, now) == std::vector<bool>{true});
  }
  EXPECT_EQ(asks, (std::vector<bool>{false, false, false, true, false, false, false, true, false}));
}

// protocol: 9.27
TEST_F(Managed, a_put_is_quiet_up_to_128_KiB) {
  const auto region = open_region(200'000, 128);
  const auto asks = [&](std::uint64_t length) {
    EXPECT_EQ(sa.sequencer->put(length, region, 0, at(0), length, {.quiet = true}), 0);
    return std::ranges::count(asks_of(*sa.sequencer, now), true) != 0;
  };
  EXPECT_FALSE(asks(131'072));
  EXPECT_TRUE(asks(131'073));
}

// protocol: 9.27
TEST_F(Managed, of_quiet_puts_that_the_peer_tells_of_one_in_three_quarters_of_the_window_asks) {
  const auto region = open_region(200'000, 16);
  std::vector<bool> asks;
  for (Context i = 0; i < 12; ++i) {
    ASSERT_EQ(sa.sequencer->put(i, region, 8 * i, at(8 * i), 8, {.quiet = true, .told = true}), 0);
    asks.push_back(asks_of(*sa.sequencer, now) == std::vector<bool>{true});
  }
  EXPECT_EQ(std::ranges::count(asks, true), 1);
  EXPECT_TRUE(asks.back());
}

// protocol: 9.27
TEST_F(Managed, of_puts_that_the_peer_tells_of_in_time_one_in_32_asks) {
  const auto region = open_region(200'000, 16);
  for (std::uint32_t i = 0; i < 40; ++i) {
    ASSERT_EQ(sa.sequencer->put(i, region, 0, at(0), 8, {.quiet = true, .told = true}), 0);
    EXPECT_EQ(asks_of(*sa.sequencer, now), std::vector<bool>{i == 31}) << i;
    Completion done;
    EXPECT_FALSE(sa.sequencer->next_completion(done)) << i;
    sa.sequencer->puts_arrived(region, i + 1);
    ASSERT_TRUE(sa.sequencer->next_completion(done)) << i;
    EXPECT_EQ(done.context, i);
    EXPECT_EQ(done.status, 0);
  }
  EXPECT_EQ(sa.sequencer->outstanding(), 0U);
}

// protocol: 9.27
TEST_F(Managed, quiet_puts_that_nobody_asks_about_complete_all_the_same) {
  const auto region = open_region(200'000, 128);
  sa.sequencer->expire(now);  // tells the time
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 8, {.quiet = true}), 0);
  run(kMillisecond / 2);
  EXPECT_FALSE(sa.find(Kind::kPut, 1)) << "nobody has asked yet";
  run(2 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kPut, 1));
  EXPECT_EQ(sa.find(Kind::kPut, 1)->status, 0);
}

// protocol: 9.27
TEST_F(Managed, quiet_puts_complete_soon_when_they_are_asked_about) {
  const auto region = open_region(200'000, 128);
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 8, {.quiet = true}), 0);
  sa.sequencer->confirm_puts();
  EXPECT_EQ(asks_of(*sa.sequencer, now), std::vector<bool>{true}) << "it has not left yet";
  sa.sequencer->expire(now);  // tells the time
  ASSERT_EQ(sa.sequencer->put(2, region, 8, at(8), 8, {.quiet = true}), 0);
  run(kMillisecond / 10);
  EXPECT_FALSE(sa.find(Kind::kPut, 2));
  sa.sequencer->confirm_puts();
  run(kMillisecond / 2);
  EXPECT_TRUE(sa.find(Kind::kPut, 2));
}

// protocol: 9.27, 9.36
TEST_F(Managed, a_quiet_put_that_is_lost_is_sent_again) {
  const auto region = open_region(200'000, 128);
  wire = [lost = false](const Frame& frame, bool) mutable -> unsigned {
    const auto loses = !lost && parsed(frame).header.op() == Op::kData;
    lost |= loses;
    return loses ? 0 : 1;
  };
  for (Context i = 0; i < 3; ++i)
    ASSERT_EQ(sa.sequencer->put(i, region, 8 * i, at(8 * i), 8, {.quiet = true}), 0);
  run(100 * kMillisecond);
  for (Context i = 0; i < 3; ++i) EXPECT_TRUE(sa.find(Kind::kPut, i)) << i;
  EXPECT_TRUE(landed(sa, sb, 0, 0, 24));
}

// protocol: 9.10, 9.18, 9.28
TEST_F(Managed, puts_and_gets_and_fetch_ops_work_on_an_open_region) {
  const auto region = open_region(200'000);
  ASSERT_EQ(sa.sequencer->put(1, region, 8, at(0), 150'000), 0);
  run(50 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kPut, 1));
  EXPECT_TRUE(landed(sa, sb, 0, 8, 150'000));
  ASSERT_EQ(sa.sequencer->get(2, region, 8, landing(sa, 3, 150'000)), 0);
  run(50 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kGet, 2));
  EXPECT_EQ(0, std::memcmp(sa.landing->data() + 3, sa.source->data(), 150'000));
  auto& word = *reinterpret_cast<std::uint64_t*>(sb.landing->data() + 160'000);
  word = 41;
  ASSERT_EQ(sa.sequencer->fetch(3, region, 160'000, Function::kFetchAdd, 1'000, 0,
                                landing(sa, 600'000, 8)),
            0);
  run(10 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kFetch, 3));
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(sa.landing->data() + 600'000), 41U);
  EXPECT_EQ(word, 1'041U);
  ASSERT_EQ(sa.sequencer->put(4, region, 200'000, at(0), 1), -EINVAL);
  ASSERT_EQ(sa.sequencer->end_region(region), 0);
  run(10 * kMillisecond);
  EXPECT_TRUE(sb.find(Kind::kEnded));
  EXPECT_EQ(sa.sequencer->put(5, region, 0, at(0), 1), -EACCES);
  EXPECT_EQ(sa.sequencer->end_region(region), -EACCES);
}

// protocol: 9.17
TEST_F(Managed, a_region_may_be_refused) {
  ASSERT_EQ(sa.sequencer->request_region(1, 1'000, 4), 0);
  run(10 * kMillisecond);
  ASSERT_TRUE(sb.find(Kind::kRegionRequest));
  ASSERT_EQ(sb.sequencer->refuse(sb.find(Kind::kRegionRequest)->request), 0);
  run(10 * kMillisecond);
  ASSERT_TRUE(sa.find(Kind::kRegion, 1));
  EXPECT_EQ(sa.find(Kind::kRegion, 1)->status, -ECONNREFUSED);
}

// protocol: 9.18
TEST_F(Managed, either_side_may_end_a_transfer) {
  wire = [](const Frame& f, bool) { return parsed(f).header.op() == wire::Op::kData ? 0U : 1U; };
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, 100'000)), 0);
  ASSERT_EQ(sb.sequencer->post_receive(8, landing(sb, 200'000, 100'000)), 0);
  ASSERT_EQ(sa.sequencer->write(5, at(0), 100'000), 0);
  ASSERT_EQ(sa.sequencer->write(6, at(0), 100'000), 0);
  run(5 * kMillisecond);
  ASSERT_EQ(sa.sequencer->cancel(5), 0);
  ASSERT_EQ(sb.sequencer->cancel(8), 0);
  run(500 * kMillisecond);
  wire = nullptr;
  run(5 * kSecond);
  EXPECT_EQ(sa.find(Kind::kWrite, 5)->status, -ECANCELED);
  EXPECT_EQ(sa.find(Kind::kWrite, 6)->status, -ECANCELED);
  EXPECT_EQ(sb.find(Kind::kReceive, 7)->status, -ECANCELED);
  EXPECT_EQ(sb.find(Kind::kReceive, 8)->status, -ECANCELED);
  EXPECT_EQ(sa.sequencer->outstanding() + sb.sequencer->outstanding(), 0U);
}

TEST_F(Managed, everything_completes_with_an_error_when_the_connection_ends) {
  ASSERT_EQ(sa.sequencer->write(1, at(0), 1'000), 0);
  ASSERT_EQ(sa.sequencer->read(2, landing(sa, 0, 1'000)), 0);
  ASSERT_EQ(sa.sequencer->post_receive(3, landing(sa, 0, 1'000)), 0);
  wire = [](const Frame&, bool) { return 0U; };
  run(20 * kSecond);
  for (const auto& [kind, context] :
       {std::pair{Kind::kWrite, 1}, {Kind::kRead, 2}, {Kind::kReceive, 3}}) {
    const auto* const c = sa.find(kind, static_cast<Context>(context));
    ASSERT_TRUE(c);
    EXPECT_EQ(c->status, -ETIMEDOUT);
  }
  EXPECT_EQ(sa.sequencer->write(1, at(0), 1'000), -ETIMEDOUT);
}

class ManagedHostile : public Managed, public ::testing::WithParamInterface<unsigned> {};

// protocol: 9.15, 10.1, 10.2, 10.6, 10.7
TEST_P(ManagedHostile, everything_arrives_right_and_once) {
  const auto region = open_region(100'000);
  hostile(GetParam(), 10);
  auto& counter = *reinterpret_cast<std::uint64_t*>(sb.landing->data() + 99'992);
  counter = 0;
  for (Context i = 0; i < 6; ++i) {
    ASSERT_EQ(sb.sequencer->post_receive(100 + i, landing(sb, 100'000 + 100'000 * i, 90'000)), 0);
    ASSERT_EQ(sa.sequencer->write(i, at(i * 1'001), 80'000 + i), 0);
    ASSERT_EQ(sa.sequencer->put(200 + i, region, 10'000 * i, at(i * 500), 10'000), 0);
    ASSERT_EQ(sa.sequencer->fetch(300 + i, region, 99'992, Function::kFetchIncrement, 0, 0,
                                  landing(sa, 8 * i, 8)),
              0);
  }
  run(20 * kSecond);
  std::uint64_t values = 0;
  for (Context i = 0; i < 6; ++i) {
    ASSERT_TRUE(sa.find(Kind::kWrite, i)) << i;
    EXPECT_EQ(sa.find(Kind::kWrite, i)->status, 0);
    ASSERT_TRUE(sb.find(Kind::kReceive, 100 + i)) << i;
    EXPECT_TRUE(landed(sa, sb, i * 1'001, 100'000 + 100'000 * i, 80'000 + i));
    ASSERT_TRUE(sa.find(Kind::kPut, 200 + i)) << i;
    if (i < 5) {
      EXPECT_TRUE(landed(sa, sb, i * 500, 10'000 * i, 10'000));
    }
    ASSERT_TRUE(sa.find(Kind::kFetch, 300 + i)) << i;
    values |= 1U << *reinterpret_cast<std::uint64_t*>(sa.landing->data() + 8 * i);
  }
  EXPECT_EQ(counter, 6U);
  EXPECT_EQ(values, 0x3fU) << "each increment saw another value";
  EXPECT_EQ(sa.sequencer->outstanding() + sb.sequencer->outstanding(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManagedHostile, ::testing::Range(1U, 25U));

// A turn of a program may begin with a frame that is older than the last time it passed in. An
// answer older than its question would give a huge round trip, and every repeat would wait a
// second.
TEST(ManagedTime, never_goes_back) {
  Sequencer sequencer({});
  sequencer.expire(5 * kSecond);
  ASSERT_EQ(sequencer.write(1, Address{}, 100), 0);
  SendEntry offer;
  ASSERT_TRUE(sequencer.transmit(offer, 5 * kSecond));
  std::uint32_t taken = 1;
  sequencer.taken(taken);
  ReceivedEntry seen{};
  seen.header.op_flags = wire::op_flags(wire::Op::kRequestAnswer);
  seen.header.d_id = offer.header.s_id;
  seen.header.s_id = 1;
  sequencer.receive(seen, 5 * kSecond - 20 * kMicrosecond);
  ASSERT_EQ(sequencer.write(2, Address{}, 100), 0);
  for (auto now = 5 * kSecond; now < 5 * kSecond + 500 * kMillisecond; now += 10 * kMillisecond) {
    sequencer.expire(now);
    for (; sequencer.transmit(offer, now); ++taken)
      ;
    sequencer.taken(taken);
  }
  EXPECT_GE(taken, 5U) << "the second offer, and its repeats after 40, 80 and 160 ms";
}

}  // namespace
}  // namespace stp::test
