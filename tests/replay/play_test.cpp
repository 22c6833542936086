// SPDX-License-Identifier: BSD-3-Clause
#include "tests/replay/frame_file.h"
#include "tools/replay/play/matcher.h"
#include "tools/replay/play/player.h"

namespace stp::replay::test {
namespace {

using wire::Op;

class Matching : public ::testing::Test {
 protected:
  Renaming names;
  Matcher matcher{names};
  std::deque<Recorded> kept;
  Decoder decoder;

  const Recorded& record(const wire::Header& h, std::int64_t time = 0) {
    auto& frame = kept.emplace_back();
    frame.bytes = frame_of(h);
    frame.decoded = decoder.decode({kept.size(), time, frame.bytes, frame.bytes.size()});
    return frame;
  }
  static wire::Header grant(std::uint16_t mx, std::uint32_t b_num) {
    auto h = header_of(Op::kClearToSend);
    h.param = 16;
    h.mx = mx;
    h.b_num = b_num;
    return h;
  }
};

TEST_F(Matching, names_may_differ_if_they_do_so_always) {
  matcher.expect(record(grant(3, 0)));
  matcher.sent(record(grant(9, 0)));
  matcher.expect(record(grant(3, 1)));
  matcher.sent(record(grant(9, 1)));
  EXPECT_TRUE(matcher.differences().empty());
  EXPECT_EQ(names.live(Name::kMx, 3), 9U);
}

TEST_F(Matching, one_name_does_not_stand_for_two) {
  matcher.expect(record(grant(3, 0)));
  matcher.sent(record(grant(9, 0)));
  matcher.expect(record(grant(4, 1)));
  matcher.sent(record(grant(9, 1)));
  auto const differences = matcher.differences();
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_NE(differences[0].in_trace, "");
  EXPECT_NE(differences[0].live, "") << "both are shown together";
}

TEST_F(Matching, repeats_are_no_difference) {
  auto const h = header_of(Op::kEndAck);
  matcher.expect(record(h));
  matcher.sent(record(h));
  matcher.expect(record(h));
  EXPECT_TRUE(matcher.differences().empty());
}

TEST_F(Matching, what_was_not_sent_and_what_should_not_have_been_are_differences) {
  matcher.expect(record(header_of(Op::kEndAck)));
  matcher.sent(record(header_of(Op::kEnd)));
  EXPECT_EQ(matcher.differences().size(), 2U);
}

TEST_F(Matching, an_answer_that_comes_seconds_late_is_none) {
  matcher.expect(record(header_of(Op::kEndAck), 0));
  matcher.sent(record(header_of(Op::kEndAck), 3'000'000'000));
  EXPECT_EQ(matcher.matched(), 0U);
}

TEST(Names, an_unknown_name_never_becomes_one_that_stands_for_something_else) {
  Renaming names;
  names.bind(Name::kPort, 202, 7);
  EXPECT_EQ(names.live(Name::kPort, 202), 7U);
  EXPECT_NE(names.live(Name::kPort, 7), 7U);
  EXPECT_EQ(names.live(Name::kPort, 8), 8U);
}

TEST(Recording, a_trace_that_cannot_be_played_says_why) {
  auto const frame = frame_of(header_of(Op::kNoOperation));
  std::string error;
  FrameFile cut;
  cut.add(1, Bytes(frame).first(50), 60);
  auto capture = cut.open(error);
  EXPECT_FALSE(record(*capture, error));
  EXPECT_NE(error.find("cut by the capture"), std::string::npos) << error;
  FrameFile backwards;
  backwards.add(2, frame);
  backwards.add(1, frame);
  capture = backwards.open(error);
  EXPECT_FALSE(record(*capture, error));
  EXPECT_NE(error.find("reordercap"), std::string::npos) << error;
}

}  // namespace
}  // namespace stp::replay::test
