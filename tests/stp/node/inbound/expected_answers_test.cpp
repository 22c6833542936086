// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/expected_answers.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace stp::test {
namespace {

constexpr Tiles kTiles{12, 10};
constexpr std::uint32_t kRId = 7, kBufx = 3;

wire::Get get(std::uint32_t g_num) {
  return {.t_len = 100, .i_mx = 5, .i_bufx = kBufx, .i_offset = 8, .r_id = kRId, .g_num = g_num};
}
wire::Header answer(std::uint32_t g_num) {
  return wire::to_header(
      wire::Data{.r_mx = 5, .r_bufx = kBufx, .r_offset = 8, .b_num = g_num, .r_id = kRId});
}
int expect(ExpectedAnswers& answers, std::uint32_t g_num) {
  return answers.expect(get(g_num), 100, false, kTiles);
}
bool lands(ExpectedAnswers& answers, const wire::Header& header, std::size_t length = 100) {
  return answers.find(wire::DataView(header), length, kTiles) != nullptr;
}

// protocol: 7.18
TEST(ExpectedAnswers, an_answer_lands_where_its_request_said_and_nowhere_else) {
  ExpectedAnswers answers;
  EXPECT_FALSE(lands(answers, answer(1)));
  ASSERT_EQ(expect(answers, 1), 0);
  EXPECT_TRUE(lands(answers, answer(1)));
  EXPECT_FALSE(lands(answers, answer(2)));
  EXPECT_FALSE(lands(answers, answer(1), 101));  // one byte more than requested
  auto elsewhere = answer(1);
  elsewhere.offset = 7;
  EXPECT_FALSE(lands(answers, elsewhere));
  elsewhere = answer(1);
  elsewhere.mx = 6;
  EXPECT_FALSE(lands(answers, elsewhere));
}

TEST(ExpectedAnswers, a_repeated_request_does_not_open_the_landing_of_an_answer_that_has_come) {
  ExpectedAnswers answers;
  ASSERT_EQ(expect(answers, 1), 0);
  ASSERT_EQ(expect(answers, 1), 0);  // a repeat, before the answer
  ASSERT_EQ(expect(answers, 2), 0);
  answers.forget(kRId, 1);
  EXPECT_EQ(expect(answers, 1), -EALREADY);
  EXPECT_EQ(expect(answers, 2), 0);  // still outstanding
  answers.forget(kRId, 2);
  EXPECT_EQ(expect(answers, 2), -EALREADY);
  // So old that it is no longer remembered: it counts as over.
  ASSERT_EQ(expect(answers, 2 + ExpectedAnswers::kMost), 0);
  EXPECT_EQ(expect(answers, 2), -EALREADY);
}

TEST(ExpectedAnswers, are_bounded) {
  ExpectedAnswers answers;
  for (std::uint32_t g = 0; g < ExpectedAnswers::kMost; ++g) ASSERT_EQ(expect(answers, g), 0);
  EXPECT_EQ(expect(answers, ExpectedAnswers::kMost), -ENOBUFS);
  answers.clear();
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(expect(answers, 0), 0);  // earlier numbers have been forgotten
}

}  // namespace
}  // namespace stp::test
