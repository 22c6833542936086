// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/puts.h"

#include "stp/transfer/clock.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test::gets_test {
namespace {

constexpr RemoteRegion kRegion{
    .r_id = 900, .mx = 3, .at = {1, 0}, .length = 100 * 65'536, .window = 4};

class GetsTest : public Parts {
 protected:
  Gets gets{config, clock, outbox, completions, repeats};

  int get(Context context, std::uint64_t length, std::uint64_t offset = 0) {
    return gets.get(context, kRegion, offset, {4, {2, 0}, length});
  }
  bool answer(const wire::Get& get) {
    return gets.on_answer({.r_mx = get.i_mx,
                           .r_bufx = get.i_bufx,
                           .r_offset = get.i_offset,
                           .b_num = get.g_num,
                           .r_id = get.r_id});
  }
  std::vector<wire::Get> requests() {
    std::vector<wire::Get> all;
    while (const auto header = next())
      if (header->op() == Op::kGet) all.push_back(wire::decode_as<wire::Get>(*header));
    taken();
    return all;
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    gets.expire();
    repeats.end_round();
  }
};

// protocol: 9.28
TEST_F(GetsTest, complete_when_all_pieces_have_arrived) {
  ASSERT_EQ(get(1, 65'536 + 10), 0);
  const auto pieces = requests();
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].t_len, 0U) << "65536";
  EXPECT_EQ(pieces[1].t_len, 10U);
  EXPECT_EQ(pieces[1].g_num, pieces[0].g_num + 1);
  EXPECT_TRUE(answer(pieces[1]));
  EXPECT_FALSE(completion());
  EXPECT_TRUE(answer(pieces[0]));
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->length, 65'546U);
  EXPECT_EQ(gets.outstanding(), 0U);
  EXPECT_FALSE(answer(pieces[0])) << "late";
}

// protocol: 9.16
TEST_F(GetsTest, at_most_64_are_on_their_way) {
  ASSERT_EQ(get(1, 70 * 65'536), 0);
  const auto first = requests();
  ASSERT_EQ(first.size(), 64U);
  answer(first[1]);
  EXPECT_TRUE(requests().empty()) << "the oldest one has no answer yet";
  answer(first[0]);
  EXPECT_EQ(requests().size(), 2U);
}

TEST_F(GetsTest, ignore_data_of_the_right_number_at_another_place) {
  ASSERT_EQ(get(1, 100), 0);
  auto elsewhere = requests()[0];
  elsewhere.i_offset += 1;
  EXPECT_FALSE(answer(elsewhere));
  EXPECT_FALSE(completion());
}

// protocol: 9.19
TEST_F(GetsTest, of_a_function_are_confirmed) {
  ASSERT_EQ(gets.fetch(1, kRegion, 8, wire::Function::kFetchAdd, 1, 0, {4, {2, 0}, 8}), 0);
  const auto request = requests()[0];
  EXPECT_TRUE(answer(request));
  EXPECT_EQ(completion()->kind, Kind::kFetch);
  const auto complete = next();
  ASSERT_TRUE(complete && complete->op() == Op::kGet);
  EXPECT_EQ(wire::decode_as<wire::Get>(*complete).g_num, request.g_num);
}

TEST_F(GetsTest, that_cannot_be_are_refused) {
  EXPECT_EQ(get(1, 0), -EINVAL);
  EXPECT_EQ(get(1, 1, kRegion.length), -EINVAL);
  const auto fetch = [&](std::uint64_t offset, std::uint32_t landing, std::uint64_t room) {
    return gets.fetch(1, kRegion, offset, wire::Function::kFetchAdd, 1, 0, {4, {2, landing}, room});
  };
  EXPECT_EQ(fetch(4, 0, 8), -EINVAL);
  EXPECT_EQ(fetch(8, 4, 8), -EINVAL);
  EXPECT_EQ(fetch(8, 8, 7), -EINVAL);
  EXPECT_EQ(gets.fetch(1, kRegion, 8, wire::Function::kGet, 1, 0, {4, {2, 0}, 8}), -EINVAL);
  EXPECT_EQ(gets.outstanding(), 0U);
}

TEST_F(GetsTest, that_the_peer_refuses_complete_when_the_node_expects_no_answer) {
  ASSERT_EQ(get(1, 2 * 65'536), 0);
  const auto pieces = requests();
  auto other = pieces[0];
  ++other.r_id;
  gets.on_refused(other);
  EXPECT_EQ(gets.outstanding(), 2U) << "it names another region";
  gets.on_refused(pieces[0]);
  answer(pieces[1]);
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, -ECONNREFUSED);
  EXPECT_EQ(done->length, 0U);
}

TEST_F(GetsTest, are_cancelled_when_the_node_has_taken_that) {
  ASSERT_EQ(get(1, 100), 0);
  requests();
  EXPECT_FALSE(gets.cancel(2));
  EXPECT_TRUE(gets.cancel(1));
  EXPECT_FALSE(completion()) << "the answer may still be written";
  node_takes();
  EXPECT_EQ(completion()->status, -ECANCELED);
}

// protocol: 10.6
TEST_F(GetsTest, are_repeated_when_the_peer_has_seen_them) {
  ASSERT_EQ(get(1, 100), 0);
  node_takes();
  pass(clock.deadline() - clock.now());
  expire();
  ASSERT_TRUE(answer_question());
  pass(kSecond);
  expire();
  EXPECT_EQ(requests().size(), 1U);
}

// protocol: 10.19
TEST_F(GetsTest, wait_for_those_before_them) {
  ASSERT_EQ(get(1, 2 * 65'536), 0);
  const auto pieces = requests();
  const auto interval = clock.deadline() - clock.now();
  pass(interval - 1);
  answer(pieces[0]);
  pass(1);
  expire();
  EXPECT_EQ(clock.deadline(), clock.now() - 1 + interval) << "from the last answer on";
}

// Together they take twice the patience with one.
// protocol: 10.11, 10.19
TEST_F(GetsTest, of_a_slow_peer_are_answered_one_after_the_other) {
  constexpr unsigned kPieces = 20, kSteps = 100;
  ASSERT_EQ(get(1, kPieces * 65'536), 0);
  for (const auto& piece : requests()) {
    for (unsigned i = 0; i < kSteps; ++i) {
      pass(kAnswerPatience / 10 / kSteps);
      expire();
      answer_question();
      node_takes();
    }
    ASSERT_TRUE(answer(piece));
  }
  EXPECT_EQ(completion()->status, 0);
}

TEST_F(GetsTest, of_a_silent_peer_are_given_up) {
  ASSERT_EQ(get(1, 100), 0);
  const auto begun = clock.now();
  while (gets.outstanding() > 0 && clock.now() < begun + 60 * kSecond) {
    node_takes();
    pass(clock.deadline() - clock.now());
    expire();
  }
  node_takes();
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
  EXPECT_LE(clock.now(), begun + kAnswerPatience + kSecond);
}

TEST_F(GetsTest, complete_when_the_connection_ends) {
  ASSERT_EQ(get(1, 2 * 65'536), 0);
  gets.fail(-ENOTCONN);
  EXPECT_EQ(completion()->status, -ENOTCONN);
  EXPECT_FALSE(completion()) << "once for each get";
}

}  // namespace
}  // namespace stp::test::gets_test
