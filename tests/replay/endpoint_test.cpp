// SPDX-License-Identifier: BSD-3-Clause
// What check learns about connectionless endpoints, and which faults it reports of which sender.
#include "tools/replay/check/endpoint.h"
#include "tests/replay/frame_file.h"
#include "tools/replay/check/checker.h"

namespace stp::replay::test {
namespace {

using wire::Op;

constexpr MacAddr kMacC{{2, 0, 0, 0, 0, 3}};

class CheckingEndpoints : public ::testing::Test {
 protected:
  std::vector<Finding> findings;
  Checker::Sink sink = [this](const Finding& finding) {
    if (!finding.is_note()) findings.push_back(finding);
  };
  std::unique_ptr<Checker> checker = std::make_unique<Checker>(sink);
  Decoder decoder;
  std::int64_t now = 1'700'000'000'000'000'000;
  std::uint64_t number = 0;

  void say(const MacAddr& from, std::uint32_t key, Op op = Op::kNoOperation) {
    auto h = header_of(op);
    h.d_key = key;
    if (op == Op::kRequestState) h.sync = 7;
    std::vector<std::byte> frame(200);
    frame.resize(wire::emit({kMacB, from, {}, false}, h, {}, {}, frame));
    checker->frame(decoder.decode({++number, now, frame, frame.size()}));
    now += 1'000'000;
  }
};

// protocol: 11.2
TEST_F(CheckingEndpoints, a_key_that_changes_and_changes_back_was_wrong) {
  say(kMacA, 1);
  say(kMacA, 2);
  EXPECT_TRUE(findings.empty()) << "it may be that of an endpoint opened anew";
  say(kMacA, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kWrongKey);
  EXPECT_EQ(findings[0].frame, 2U);
}

TEST_F(CheckingEndpoints, who_has_not_been_told_of_a_new_key_is_not_wrong_at_once) {
  say(kMacA, 1);
  say(kMacC, 2);
  say(kMacA, 1);
  EXPECT_TRUE(findings.empty());
  now += 2'000'000'000;
  say(kMacA, 1);
  EXPECT_EQ(findings.size(), 1U) << "two seconds later it was the other that was";
}

// protocol: 11.10
TEST_F(CheckingEndpoints, an_endpoint_is_known_by_its_second_sender) {
  say(kMacA, 1);
  say(kMacC, 1);
  say(kMacA, 1, Op::kRequestDisconnect);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kEndpointOperation);
}

TEST_F(CheckingEndpoints, one_sender_may_be_a_peer_of_before_the_capture_unless_the_user_knows) {
  say(kMacA, 1);
  say(kMacA, 1, Op::kRequestDisconnect);
  EXPECT_TRUE(findings.empty());
  checker = std::make_unique<Checker>(sink, CheckerOptions{.endpoints = true});
  say(kMacA, 1);
  say(kMacA, 1, Op::kRequestDisconnect);
  EXPECT_EQ(findings.size(), 1U);
}

// protocol: 6.3, 11.4, 11.9
TEST_F(CheckingEndpoints, nobody_owes_answers_or_credit_where_there_may_be_no_connection) {
  for (int i = 0; i < 200; ++i) {
    say(kMacA, 1);
    say(kMacA, 1, Op::kRequestState);
  }
  checker->finish();
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

TEST(EndpointSizes, the_stu_size_is_what_all_stus_allow) {
  EndpointSizes sizes;
  EXPECT_TRUE(sizes.allow({.number = 0, .offset = 900, .length = 124}));
  EXPECT_FALSE(sizes.stu_known());
  EXPECT_TRUE(sizes.allow({.number = 2, .offset = 2048, .length = 828, .last = true}));
  EXPECT_TRUE(sizes.stu_known());
  EXPECT_EQ(sizes.stu_log2(), 10U);
  EXPECT_FALSE(sizes.allow({.number = 1, .offset = 1024, .length = 1025, .last = true}));
  EXPECT_FALSE(sizes.allow({.number = 1, .offset = 512, .length = 10, .last = true}));
}

TEST(EndpointSizes, a_block_in_two_buffers_tells_how_long_they_are) {
  EndpointSizes sizes;
  EXPECT_TRUE(sizes.allow({.number = 1, .offset = 1024, .length = 1024}));
  const SeenStu first{.number = 0, .bufx = 7, .offset = 900, .length = 124};
  EXPECT_FALSE(sizes.span(first, {.number = 2, .bufx = 8, .offset = 2048})) << "none fits";
  EXPECT_FALSE(sizes.bufsize());
  EXPECT_TRUE(sizes.span(first, {.number = 3, .bufx = 8, .offset = 1024}));
  EXPECT_EQ(sizes.bufsize(), 11U);
}

}  // namespace
}  // namespace stp::replay::test
