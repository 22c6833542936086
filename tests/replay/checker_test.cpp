// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/check/checker.h"

#include "stp/wire/padding.h"
#include "tests/replay/checking.h"
#include "tools/replay/check/connection.h"
#include "tools/sim/live_bytes.h"

namespace stp::replay::test {
namespace {

using wire::Op;

TEST_F(Checking, memory_is_bounded_by_what_lives_and_not_by_the_length_of_the_trace) {
  const auto life = [&](unsigned i) {
    const auto key = 0x1000 + i;
    connect(static_cast<std::uint16_t>(1 + i % 1000), key);
    disconnect(static_cast<std::uint16_t>(1 + i % 1000), key);
    now += 10'000'000;
  };
  for (unsigned i = 0; i < 5'000; ++i) life(i);
  const auto before = stp::test::live_bytes();
  for (unsigned i = 5'000; i < 20'000; ++i) life(i);
  EXPECT_LE(stp::test::live_bytes(), before + 100'000);
  checker->finish();
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

// As a vector of flags, each Block had 8 KiB for one frame.
TEST_F(Checking, of_many_blocks_the_last_stu_costs_what_a_first_one_does) {
  constexpr std::uint32_t kBlocks = 1'000, kLast = 65'535;
  constexpr std::uint64_t kStu = 1'024;
  connect(5, 1);
  auto rmr = named(Op::kRequestMemoryRegion, 5, 1);
  rmr.param = 1'024;
  rmr.set_t_len((kLast + 1) * kStu);
  rmr.s_id = 7;
  say(rmr, kMacA, kMacB);
  auto mra = rmr;
  mra.op_flags = wire::op_flags(Op::kMemoryRegionAvailable);
  mra.mx = 4;
  mra.d_id = 7;
  mra.s_id = 8;
  say(mra, kMacB, kMacA);
  const std::vector<std::byte> bytes(kStu);
  const auto before = stp::test::live_bytes();
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    auto data = named(Op::kData, 5, 1);
    data.param = kLast;
    data.mx = 4;
    data.bufx = kLast / 4;  // buffers of 4 KiB
    data.offset = kLast % 4 * kStu;
    data.d_id = 8;
    data.b_num = i;
    say(data, kMacA, kMacB, bytes);
  }
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
  EXPECT_LE(stp::test::live_bytes(), before + kBlocks * 1'000);
}

TEST_F(Checking, endless_strangers_are_forgotten) {
  for (unsigned i = 0; i < 140'000; ++i) {
    auto h = named(Op::kNoOperation, static_cast<std::uint16_t>(1 + i % 60'000), 7);
    say(h, MacAddr::from_u64(0x020000000100 + i / 60'000), kMacB);
    findings.clear();
  }
  EXPECT_LE(stp::test::live_bytes(), std::size_t{200} << 20);
}

TEST_F(Checking,
       what_a_lost_frame_explains_is_only_a_note_where_the_capture_is_known_to_lack_some) {
  auto rsr = named(Op::kRequestStateResponse, 5, 1);
  rsr.sync = 99;
  rsr.d_id = wire::kNoId;
  connect(5, 1);
  say(rsr, kMacB, kMacA);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kRsrUnasked);
  EXPECT_FALSE(findings[0].is_note());

  checker = &with_losses;
  connect(5, 1);
  say(rsr, kMacB, kMacA);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_TRUE(findings[1].is_note());
}

TEST_F(Checking, a_finding_names_frame_section_rule_and_both_sides_of_the_matter) {
  connect(5, 0xabc);
  say(named(Op::kNoOperation, 5, 0xdef), kMacA, kMacB);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(line_of(findings[0]), "3: 5.18 wrong-key: expected D_Key 0xabc; seen D_Key 0xdef");
  EXPECT_EQ(json_of(findings[0]),
            R"({"frame":3,"time":1700000000.000040000,"kind":"finding","section":"5.18",)"
            R"("rule":"wrong-key","expected":"D_Key 0xabc","seen":"D_Key 0xdef"})");
}

// protocol: 5.9
TEST_F(Checking, an_rd_made_of_the_fields_of_a_ghost_answers_it_and_no_other_does) {
  auto rc = header_of(Op::kRequestConnection);
  rc.s_port = 5;
  rc.d_port = 0;
  rc.bufx = 12;
  rc.offset = 1;
  rc.sync = 10;
  say(rc, kMacA, kMacB);
  auto ca = rc;
  ca.op_flags = wire::op_flags(Op::kConnectionAnswer);
  ca.s_port = 6;
  ca.d_port = 5;
  ca.d_key = 9;  // that no RC gave
  ca.offset = 7;
  say(ca, kMacB, kMacA);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kCaKey);
  auto rd = header_of(Op::kRequestDisconnect);
  rd.s_port = 5;
  rd.d_port = 6;
  rd.d_key = 7;
  rd.offset = 9;
  say(rd, kMacA, kMacB);
  EXPECT_EQ(findings.size(), 1U);
  rd.offset = 1;
  say(rd, kMacA, kMacB);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].rule, Rule::kNotEstablished);
}

// As tcpdump sees it on the host of the answerer: its own frames pass the capture by.
TEST_F(Checking, who_does_not_wait_for_a_ca_is_told_when_something_comes_back) {
  auto rc = header_of(Op::kRequestConnection);
  rc.s_port = 5;
  rc.d_port = 0;
  rc.bufx = 12;
  rc.offset = 1;
  rc.sync = 10;
  say(rc, kMacA, kMacB);
  auto early = named(Op::kNoOperation, 5, 9);
  early.d_port = 6;
  for (int i = 0; i < 100; ++i) say(early, kMacA, kMacB);
  EXPECT_TRUE(findings.empty());
  auto ca = rc;
  ca.op_flags = wire::op_flags(Op::kConnectionAnswer);
  ca.s_port = 6;
  ca.d_port = 5;
  ca.d_key = 1;
  ca.offset = 9;
  say(ca, kMacB, kMacA);
  ASSERT_EQ(findings.size(), 64U);
  EXPECT_EQ(findings[0].rule, Rule::kNotEstablished);
  EXPECT_EQ(findings[0].frame, 2U);
}

// protocol: 5.18
TEST_F(Checking, one_mistake_is_told_once_and_what_nobody_takes_changes_nothing) {
  connect(5, 0xabc);
  for (int i = 0; i < 3; ++i) say(named(Op::kNoOperation, 5, 0xdef), kMacA, kMacB);
  EXPECT_EQ(findings.size(), 1U);
  say(named(Op::kRequestDisconnect, 5, 0xeee), kMacA, kMacB);
  EXPECT_EQ(findings.size(), 2U);
  now += 50'000'000;
  say(named(Op::kNoOperation, 5, 0xabc), kMacA, kMacB);  // it has not been disconnected
  EXPECT_EQ(findings.size(), 2U);
  disconnect(5, 0xabc);
  EXPECT_EQ(findings.size(), 2U);
}

TEST_F(Checking, a_ca_without_an_rc_is_a_fault_where_the_capture_has_every_connection) {
  Checker complete{sink, {.endpoints = true}};
  auto ca = header_of(Op::kConnectionAnswer);
  ca.s_port = ca.d_port = 5;
  ca.bufx = 12;
  ca.sync = 10;
  ca.offset = ca.d_key = 7;
  say(ca, kMacB, kMacA);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].is_note());
  checker = &complete;
  say(ca, kMacB, kMacA);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].rule, Rule::kCaUnasked);
}

// protocol: 5.21
TEST_F(Checking, one_short_interval_below_a_millisecond_may_be_the_captures_and_three_are_not) {
  connect(5, 1);
  auto rs = named(Op::kRequestState, 5, 1);
  rs.d_id = rs.b_num = wire::kNoId;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(findings.empty()) << line_of(findings.front());
    rs.sync = i;
    say(rs, kMacA, kMacB);
    now += 80'000;
    say(rs, kMacA, kMacB);
    now += 5'000'000;
  }
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kRetryTooSoon);
}

// protocol: 5.23
TEST_F(Checking, an_own_rs_may_be_repeated_each_half_second) {
  connect(5, 1);
  auto rs = named(Op::kRequestState, 5, 1);
  rs.d_id = rs.b_num = wire::kNoId;
  rs.sync = 1;
  TraceTime pause = 200'000;
  for (int i = 0; i < 18; ++i, pause = std::min<TraceTime>(2 * pause, 500'000'000)) {
    say(rs, kMacA, kMacB);
    now += pause;
  }
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

// protocol: 5.21
TEST_F(Checking, repeats_between_other_frames_have_left_a_queue_together_and_are_not_too_soon) {
  connect(5, 1);
  auto rs = named(Op::kRequestState, 5, 1);
  rs.d_id = rs.b_num = wire::kNoId;
  for (int i = 0; i < 9; ++i) {
    say(rs, kMacA, kMacB);
    now += 60'000;
    say(named(Op::kNoOperation, 5, 1), kMacA, kMacB);
  }
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

// protocol: 5.11
TEST_F(Checking, an_rd_with_the_receivers_key_is_answered_whatever_else_it_says) {
  connect(5, 0xabc);
  auto rd = named(Op::kRequestDisconnect, 5, 0xabc);
  rd.offset = 0xdef;
  say(rd, kMacA, kMacB);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(line_of(findings[0]), "3: 5.18 wrong-key: expected I_Key 0xabc; seen I_Key 0xdef");
  say(named(Op::kDisconnectAnswer, 5, 0xabc), kMacB, kMacA);
  say(named(Op::kDisconnectComplete, 5, 0xabc), kMacA, kMacB);
  EXPECT_EQ(findings.size(), 1U) << line_of(findings.back());

  connect(6, 0x123);
  rd = named(Op::kRequestDisconnect, 6, 0x123);
  rd.s_port = 60;
  say(rd, kMacA, kMacB);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].rule, Rule::kWrongPeer);
  say(named(Op::kDisconnectAnswer, 6, 0x123), kMacB, kMacA);
  say(named(Op::kDisconnectComplete, 6, 0x123), kMacA, kMacB);
  EXPECT_EQ(findings.size(), 2U) << line_of(findings.back());
}

// protocol: 5.2
TEST_F(Checking, an_rd_with_a_wrong_key_or_of_a_stranger_is_none) {
  connect(5, 0xabc);
  auto rd = named(Op::kRequestDisconnect, 5, 0xdef);
  rd.s_port = 60;
  say(rd, kMacA, kMacB);
  rd.d_key = 0xabc;
  say(rd, MacAddr::from_u64(0x020000000077), kMacB);
  const auto before = findings.size();
  say(named(Op::kDisconnectAnswer, 5, 0xabc), kMacB, kMacA);
  ASSERT_EQ(findings.size(), before + 1);
  EXPECT_EQ(findings.back().rule, Rule::kDaUnasked);
}

// protocol: 10.3
TEST_F(Checking, what_comes_by_a_timer_does_not_show_that_its_sender_hears) {
  connect(5, 1);
  auto rs = named(Op::kRequestState, 5, 1);
  rs.sync = 9;
  rs.d_id = rs.b_num = wire::kNoId;
  auto cts = named(Op::kClearToSend, 5, 1);
  cts.param = 12;
  cts.mx = 3;
  for (const auto pause : {400'000'000, 800'000'000, 1'000'000}) {
    say(rs, kMacA, kMacB);
    now += pause;
    say(cts, kMacB, kMacA);
  }
  checker->finish();
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

class CheckingParts : public Checking {
 protected:
  static constexpr std::uint32_t kStu = 1'024;

  // A's request is that of a managed connection.
  void SetUp() override {
    connect(5, 1);
    auto rts = named(Op::kRequestToSend, 5, 1);
    rts.s_id = 9;
    rts.d_id = wire::kNoId;
    rts.set_t_len(12);
    rts.mx = 14;
    rts.param = 1;
    std::vector<std::byte> option(wire::kOptionSize);
    wire::store32(option.data(), 1);
    say(rts, kMacA, kMacB, option);
    auto cts = named(Op::kClearToSend, 5, 1);
    cts.param = 14;
    cts.mx = 4;
    cts.bufx = 1'000;
    cts.d_id = 9;
    cts.s_id = 77;
    say(cts, kMacB, kMacA);
    auto hello = named(Op::kData, 5, 1);
    hello.op_flags |= wire::flag::kLast;
    hello.bufx = 1'000;
    hello.mx = 4;
    hello.d_id = 77;
    std::vector<std::byte> request(12);
    wire::store32(request.data(), 0x53544d48);
    wire::store32(request.data() + 4, 1U << 16 | 1);
    say(hello, kMacA, kMacB, request);
    ASSERT_TRUE(findings.empty()) << line_of(findings.front());
  }
  // B grants the STUs of Block `b_num` from `first` on whose bits in `stus` are 1; 0: all of it.
  // A Block has 16.
  void grant(std::uint32_t first, unsigned stus, std::uint32_t b_num = 0) {
    auto cts = named(Op::kClearToSend, 5, 1);
    cts.param = 14;
    cts.mx = 3;
    cts.bufx = 4 * b_num;
    cts.b_num = b_num;
    cts.sync = first * kStu;
    std::vector<std::byte> option(wire::kOptionSize);
    option[0] = static_cast<std::byte>(stus >> 8);
    option[1] = static_cast<std::byte>(stus);
    say(cts, kMacB, kMacA, stus == 0 ? Bytes{} : Bytes(option));
    now += 300'000;
  }
  void expect(Rule rule) {
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].rule, rule) << line_of(findings[0]);
  }
};

// RCs of all lengths, again and again, to a station that keeps nothing of them: each CA has another
// Key.
class CheckingLengths : public Checking {
 protected:
  CheckingLengths() { over_ip = true; }

  void ask(unsigned stu, unsigned interval) {
    auto rc = header_of(Op::kRequestConnection);
    rc.s_port = 5;
    rc.d_port = 0;
    rc.param = slots;
    rc.bufx = 12;
    rc.offset = 0xabc;
    rc.sync = stu;
    rc.d_id = 3000;
    rc.b_num = wire::Padding{.known = true, .proves = true, .stu = stu}.word();
    const std::vector<std::byte> padding(wire::padded_length(stu) - wire::kHeaderSize);
    say(rc, kMacA, kMacB, padding);
    auto ca = rc;
    ca.op_flags = wire::op_flags(Op::kConnectionAnswer);
    ca.s_port = 6;
    ca.d_port = 5;
    ca.d_key = 0xabc;
    ca.offset = key(stu, interval);
    ca.d_id = 0;
    ca.s_id = 3000;
    ca.sync = 13;
    ca.b_num = wire::Padding{.known = true, .asked = stu, .stu = stu}.word();
    say(ca, kMacB, kMacA, padding);
  }
  static std::uint32_t key(unsigned stu, unsigned interval) { return 0x1000 * interval + stu; }
  void prove(std::uint32_t key) {
    auto rsr = header_of(Op::kRequestStateResponse, wire::flag::kReject);
    rsr.param = slots;
    rsr.s_port = 5;
    rsr.d_port = 6;
    rsr.d_key = key;
    rsr.sync = 0xabc;
    rsr.b_num = wire::kNoId;
    rsr.s_id = 3000;
    say(rsr, kMacA, kMacB);
  }
  void expect_nothing() { EXPECT_TRUE(findings.empty()) << line_of(findings.front()); }
};

// protocol: 13.20, 13.21
TEST_F(CheckingLengths, are_known_however_often_they_are_repeated) {
  for (unsigned burst = 0; burst < 6; ++burst) {
    for (unsigned stu = 13; stu >= 8; --stu) ask(stu, 1 + burst / 3);
    now += std::int64_t{40'000'000} << burst;
  }
  prove(key(9, 2));
  expect_nothing();
}

// Until the peer's host shows that it is there, a requester asks for that; it is no connection.
// protocol: 13.20
TEST_F(CheckingLengths, are_not_sent_where_nobody_is_there_which_is_asked_for) {
  ask(10, 1);
  auto rsr = header_of(Op::kRequestStateResponse, wire::flag::kReject);
  rsr.s_port = 5;
  rsr.d_port = 0xff00;
  rsr.sync = 0xabc;
  rsr.b_num = rsr.d_id = rsr.s_id = wire::kNoId;
  say(rsr, kMacA, kMacB);
  auto rd = header_of(Op::kRequestDisconnect);
  rd.s_port = 0xff00;
  rd.d_port = 5;
  rd.d_key = 0xabc;
  rd.offset = 0;
  say(rd, kMacB, kMacA);
  prove(key(10, 1));
  expect_nothing();
}

// protocol: 6.4, 13.21
TEST_F(CheckingLengths, are_proven_by_whom_nobody_has_asked) {
  ask(10, 1);
  prove(key(10, 1));
  expect_nothing();
  over_ip = false;
  prove(key(10, 1));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kRsrUnasked) << "on Ethernet they are asked";
}

// protocol: 13.19
TEST_F(CheckingParts, are_granted_without_a_pause) {
  for (std::uint32_t first = 0; first < 16; first += 4) grant(first, 0xf000);
  grant(0, 0xff00, 1);
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
  grant(0, 0xff00, 1);
  expect(Rule::kCtsTooSoon);  // that is a repeat
}

// protocol: 13.19
TEST_F(CheckingParts, leave_no_gap) {
  grant(0, 0xf000);
  grant(5, 0xf000);
  expect(Rule::kPathParts);
}

// protocol: 13.19
TEST_F(CheckingParts, do_not_overlap) {
  grant(0, 0xf000);
  grant(3, 0xf000);
  expect(Rule::kPathParts);
}

// protocol: 13.19
TEST_F(CheckingParts, have_no_hole) {
  grant(0, 0xf000);
  grant(4, 0xb000);
  expect(Rule::kPathParts);
}

// protocol: 13.19
TEST_F(CheckingParts, begin_with_an_stu) {
  grant(0, 0x7000);
  expect(Rule::kPathParts);
}

// protocol: 10.23, 13.19
TEST_F(CheckingParts, a_repeat_without_an_option_payload_names_the_whole_block) {
  grant(0, 0xf000);
  now += 100'000'000;
  grant(2, 0);
  expect(Rule::kPathParts);
}

// protocol: 10.23, 13.19
TEST_F(CheckingParts, a_repeat_names_what_has_been_granted) {
  grant(0, 0xf000);
  now += 100'000'000;
  grant(1, 0xa000);
  grant(4, 0xfff0);
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

// protocol: 10.23, 13.19
TEST_F(CheckingParts, are_none_at_level_0_where_the_option_payload_is_the_users) {
  connect(6, 2);
  auto cts = named(Op::kClearToSend, 6, 2);
  cts.param = 14;
  cts.mx = 3;
  const std::vector<std::byte> text(wire::kOptionSize, std::byte{'A'});
  say(cts, kMacB, kMacA, text);
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
}

// protocol: 13.19
TEST_F(CheckingParts, all_go_before_the_next_block) {
  grant(0, 0xf000);
  grant(0, 0xf000, 1);
  expect(Rule::kPathParts);
}

// protocol: 5.4, 5.36
TEST_F(Checking, an_answer_that_nobody_uses_may_be_forgotten_and_another_be_given) {
  connect(7, 8, 0x1000);
  now += 650'000'000;
  connect(7, 9, 0x1000);
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
  auto used = named(Op::kNoOperation, 7, 0x1000);
  used.d_port = 9;
  say(used, kMacA, kMacB);
  now += 650'000'000;
  connect(7, 10, 0x1000);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kSecondVc);
}

TEST(RecentEntries, the_oldest_makes_room) {
  Recent<int, int, 2> recent;
  recent.put(1, 10);
  recent.put(2, 20);
  EXPECT_FALSE(recent.forgot());
  recent.put(1, 11);
  recent.put(3, 30);
  EXPECT_TRUE(recent.forgot());
  EXPECT_EQ(recent.find(2), nullptr);
  EXPECT_EQ(*recent.find(1), 11);
}

TEST(RecentEntries, what_is_used_again_stays) {
  Recent<int, int, 2> recent;
  recent.put(1, 10);
  recent.put(2, 20);
  EXPECT_EQ(recent.find_again(3), nullptr);
  EXPECT_EQ(*recent.find_again(1), 10);
  recent.put(3, 30);
  EXPECT_EQ(recent.find(2), nullptr);
  EXPECT_EQ(*recent.find(1), 10);
}

TEST(RuleNames, are_unique) {
  for (const auto& a : rules())
    for (const auto& b : rules()) EXPECT_TRUE(a.rule == b.rule || a.name != b.name) << a.name;
}

}  // namespace
}  // namespace stp::replay::test
