// SPDX-License-Identifier: BSD-3-Clause
#include "tests/replay/frame_file.h"
#include "tools/replay/play/node_subject.h"
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
  EXPECT_EQ(names.live_mx(101, 3), 9U);
}

TEST_F(Matching, one_name_does_not_stand_for_two) {
  matcher.expect(record(grant(3, 0)));
  matcher.sent(record(grant(9, 0)));
  matcher.expect(record(grant(4, 1)));
  matcher.sent(record(grant(9, 1)));
  const auto differences = matcher.differences();
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_NE(differences[0].in_trace, "");
  EXPECT_NE(differences[0].live, "") << "both are shown together";
}

TEST_F(Matching, repeats_are_no_difference) {
  const auto h = header_of(Op::kEndAck);
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
  const auto frame = frame_of(header_of(Op::kNoOperation));
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

class Playing : public ::testing::Test {
 protected:
  FrameFile file;
  PlayResult result;

  static wire::Header request() {
    auto h = header_of(Op::kRequestConnection);
    h.d_port = 0;
    h.param = 64;
    h.bufx = 12;
    h.offset = 0xa1;
    h.sync = 10;
    h.d_id = 3000;
    return h;
  }
  static wire::Header answer(std::uint16_t port, std::uint32_t key) {
    auto h = request();
    h.op_flags = wire::op_flags(Op::kConnectionAnswer);
    h.s_port = port;
    h.d_port = 101;
    h.d_key = 0xa1;
    h.offset = key;
    h.d_id = 0;
    h.s_id = 3000;
    return h;
  }
  static wire::Header named(Op op) {
    auto h = header_of(op);
    h.d_key = 0xb2;
    return h;
  }
  static wire::Header from_b(Op op) {
    auto h = header_of(op);
    h.s_port = 202;
    h.d_port = 101;
    h.d_key = 0xa1;
    return h;
  }
  void a(std::uint32_t second, const wire::Header& h) { file.add(second, frame_of(h)); }
  void b(std::uint32_t second, const wire::Header& h) {
    std::vector<std::byte> frame(200);
    frame.resize(wire::emit({kMacA, kMacB, {}, false}, h, {}, {}, frame));
    file.add(second, frame);
  }
  void play() {
    std::string error;
    auto capture = file.open(error);
    ASSERT_TRUE(capture) << error;
    const auto trace = record(*capture, error);
    ASSERT_TRUE(trace) << error;
    result = play_node(*trace, kMacB);
  }
};

TEST_F(Playing, a_gap_of_years_is_passed_over) {
  constexpr std::uint32_t kThirtyYears = 946'080'000;
  a(1, request());
  b(1, answer(202, 0xb2));
  auto state = named(Op::kRequestState);
  state.sync = 5;
  state.b_num = state.d_id = wire::kNoId;
  a(kThirtyYears, state);
  auto told = from_b(Op::kRequestStateResponse);
  told.sync = 5;
  told.b_num = told.d_id = wire::kNoId;
  b(kThirtyYears, told);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().live;
  EXPECT_EQ(result.matched, 2U);
}

// 20 Transfers to 16 MiB each; no page of it is touched.
TEST_F(Playing, grants_of_much_memory_are_played_or_refused_and_never_half_played) {
  const auto grant = [this](std::uint32_t i, std::uint8_t log2) {
    auto rts = named(Op::kRequestToSend);
    rts.param = 1;
    rts.mx = log2;
    rts.set_t_len(std::uint64_t{1} << log2);
    rts.d_id = wire::kNoId;
    rts.s_id = i;
    a(2, rts);
    auto cts = from_b(Op::kClearToSend);
    cts.param = log2;
    cts.mx = static_cast<std::uint16_t>(1 + i % 8);
    cts.bufx = i << (log2 - 12);
    cts.d_id = i;
    cts.s_id = 1'000 + i;
    b(2, cts);
  };
  a(1, request());
  b(1, answer(202, 0xb2));
  for (std::uint32_t i = 0; i < 20; ++i) grant(i, 24);
  play();
  EXPECT_EQ(result.refused, "");
  EXPECT_TRUE(result.troubles.empty()) << result.troubles.front();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().in_trace;
  for (std::uint32_t i = 20; i < 300; ++i) grant(i, 24);
  play();
  EXPECT_NE(result.refused.find("more than 4 GiB"), std::string::npos) << result.refused;
  EXPECT_TRUE(result.differences.empty());
}

TEST(Known, bytes_are_forgotten_where_it_is_asked_for_and_nowhere_else) {
  KnownBytes known(100);
  for (std::size_t at = 0; at < 100; ++at) known.add(at);
  known.forget(13, 50);
  for (std::size_t at = 0; at < 100; ++at) EXPECT_EQ(known.has(at), at < 13 || at >= 63) << at;
}

TEST_F(Playing, frames_of_the_year_2106_are_played) {
  a(0xfffffffe, request());
  b(0xffffffff, answer(202, 0xb2));
  play();
  EXPECT_TRUE(result.differences.empty());
}

TEST_F(Playing, a_station_that_uses_the_port_of_a_live_connection_again_has_begun_anew) {
  a(1, request());
  b(1, answer(202, 0xb2));
  a(2, named(Op::kNoOperation));
  auto again = request();
  again.offset = 0xa3;
  again.s_port = 102;
  a(3, again);
  auto second = answer(202, 0xb4);
  second.d_port = 102;
  second.d_key = 0xa3;
  b(3, second);
  play();
  EXPECT_TRUE(result.differences.empty());
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_NE(result.notes[0].find("after frame 2"), std::string::npos) << result.notes[0];
}

TEST_F(Playing, a_restart_stands_in_front_of_all_that_outlives_it) {
  const auto connect = [this](std::uint32_t second, std::uint16_t a_port, std::uint16_t b_port) {
    auto rc = request();
    rc.s_port = a_port;
    rc.offset = 0x100U + a_port;
    a(second, rc);
    auto ca = answer(b_port, 0x200U + a_port);
    ca.d_port = a_port;
    ca.d_key = rc.offset;
    b(second, ca);
  };
  connect(1, 101, 202);
  connect(2, 102, 203);
  auto rd = named(Op::kRequestDisconnect);
  rd.s_port = 102;
  rd.d_port = 203;
  rd.d_key = 0x200 + 102;
  rd.offset = 0x100 + 102;
  a(3, rd);
  auto da = from_b(Op::kDisconnectAnswer);
  da.s_port = 203;
  da.d_port = 102;
  da.d_key = rd.offset;
  da.offset = rd.d_key;
  b(3, da);
  connect(4, 103, 203);  // a Port that is free
  connect(5, 104, 202);  // one that is not
  auto state = named(Op::kNoOperation);
  state.s_port = 103;
  state.d_port = 203;
  state.d_key = 0x200 + 103;
  state.op_flags |= wire::flag::kSendState;
  a(6, state);
  auto told = from_b(Op::kRequestStateResponse);
  told.s_port = 203;
  told.d_port = 103;
  told.d_key = 0x100 + 103;
  told.b_num = told.d_id = wire::kNoId;
  b(6, told);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().in_trace;
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_NE(result.notes[0].find("after frame 2"), std::string::npos) << result.notes[0];
}

// protocol: 5.9
TEST_F(Playing, an_rd_that_answers_a_ghost_leaves_the_connection_of_that_port_alone) {
  a(1, request());
  b(1, answer(202, 0xb2));
  auto ghost = answer(101, 0xaa);
  ghost.d_port = 202;
  ghost.d_key = 0xdead;
  a(2, ghost);
  auto rd = from_b(Op::kRequestDisconnect);
  rd.d_key = 0xaa;
  rd.offset = 0xdead;
  b(2, rd);
  auto state = named(Op::kNoOperation);
  state.op_flags |= wire::flag::kSendState;
  a(3, state);
  auto told = from_b(Op::kRequestStateResponse);
  told.b_num = told.d_id = wire::kNoId;
  b(3, told);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().in_trace;
  EXPECT_EQ(result.matched, 3U);
}

// Endpoints of one station count their Mx each for itself.
// protocol: 7.3
TEST_F(Playing, two_ports_of_a_station_may_call_different_memory_by_one_mx) {
  constexpr std::uint16_t kMx = 1;
  const std::vector<std::byte> bytes(64, std::byte{7});
  const auto to = [](Op op, std::uint16_t nth) {
    auto h = named(op);
    h.s_port += nth, h.d_port += nth, h.d_key += nth;
    return h;
  };
  const auto from = [](Op op, std::uint16_t nth) {
    auto h = from_b(op);
    h.s_port += nth, h.d_port += nth, h.d_key += nth;
    return h;
  };
  for (std::uint16_t nth = 0; nth < 2; ++nth) {
    auto rc = request();
    rc.s_port += nth, rc.offset += nth, rc.d_id += nth;  // another UPort: another endpoint
    a(1 + 2U * nth, rc);
    auto ca = answer(202 + nth, 0xb2U + nth);
    ca.d_port += nth, ca.d_key += nth, ca.s_id += nth;
    b(1 + 2U * nth, ca);
    auto rts = to(Op::kRequestToSend, nth);
    rts.param = 1;
    rts.mx = 12;
    rts.set_t_len(bytes.size());
    rts.d_id = wire::kNoId;
    rts.s_id = 1;
    a(2 + 2U * nth, rts);
    auto cts = from(Op::kClearToSend, nth);
    cts.param = 12;
    cts.mx = kMx;
    cts.bufx = 100U * (nth + 1);
    cts.d_id = 1;
    cts.s_id = 2;
    b(2 + 2U * nth, cts);
  }
  for (std::uint16_t nth = 0; nth < 2; ++nth) {
    auto data = to(Op::kData, nth);
    data.op_flags |= wire::flag::kLast | wire::flag::kSendState;
    data.mx = kMx;
    data.bufx = 100U * (nth + 1);
    data.sync = 9;
    data.d_id = 2;
    file.add(5, frame_of(data, bytes));
    auto told = from(Op::kRequestStateResponse, nth);
    told.offset = 1;  // one Block is whole
    told.sync = 9;
    told.d_id = 1;
    told.s_id = 2;
    b(5, told);
  }
  play();
  EXPECT_TRUE(result.troubles.empty()) << result.troubles.front();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().in_trace;
  EXPECT_EQ(result.matched, 6U);
}

// The capture was made at the other end, and its host was busy.
// protocol: 5.17
TEST_F(Playing, what_stands_in_front_of_the_answer_to_an_rd_was_sent_before_the_rd_came) {
  a(1, request());
  b(1, answer(202, 0xb2));
  auto rd = named(Op::kRequestDisconnect);
  rd.offset = 0xa1;
  a(2, rd);
  b(3, from_b(Op::kNoOperation));
  auto da = from_b(Op::kDisconnectAnswer);
  da.offset = rd.d_key;
  b(3, da);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().in_trace;
  EXPECT_EQ(result.matched, 3U);
}

// The capture was made at the other end, and the station's host was busy.
TEST_F(Playing, a_question_that_an_rd_follows_had_come_when_the_connection_was_closed) {
  a(1, request());
  b(1, answer(202, 0xb2));
  auto question = named(Op::kNoOperation);
  question.op_flags |= wire::flag::kSendState;
  a(2, question);
  auto rd = from_b(Op::kRequestDisconnect);
  rd.offset = 0xb2;
  b(3, rd);
  auto da = named(Op::kDisconnectAnswer);
  da.offset = 0xa1;
  a(3, da);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().live;
}

TEST_F(Playing, what_the_station_may_have_sent_after_the_end_is_no_difference) {
  a(1, request());
  b(1, answer(202, 0xb2));
  auto question = named(Op::kNoOperation);
  question.op_flags |= wire::flag::kSendState;
  a(2, question);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().live;
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_NE(result.notes[0].find("1 frames that the live side sends at the end"), std::string::npos)
      << result.notes[0];
  a(3, named(Op::kNoOperation));
  play();
  EXPECT_EQ(result.differences.size(), 1U) << "the station had a second to answer";
}

TEST_F(Playing, an_endpoint_says_what_its_program_says_and_nothing_else) {
  a(1, named(Op::kRequestState));
  auto told = from_b(Op::kRequestStateResponse);
  told.s_id = 9;
  b(2, told);
  play();
  EXPECT_TRUE(result.differences.empty()) << result.differences.front().live;
  EXPECT_TRUE(result.troubles.empty()) << result.troubles.front();
  EXPECT_EQ(result.matched, 1U);
}

}  // namespace
}  // namespace stp::replay::test
