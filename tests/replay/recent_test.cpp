// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/check/connection.h"

#include <chrono>

#include "tests/replay/checking.h"

namespace stp::replay::test {
namespace {

using wire::Op;

// More Transfers than check keeps of one side, on one connection.
class Forgetting : public Checking {
 protected:
  static constexpr std::uint32_t kMany = 600;
  static constexpr std::uint32_t kRegion = 9'000;

  Forgetting() {
    slots = 60'000;
    connect(5, 1);
  }
  wire::Header of(Op op, std::uint32_t d_id, std::uint32_t s_id) {
    auto h = named(op, 5, 1);
    h.d_id = d_id;
    h.s_id = s_id;
    return h;
  }
  wire::Header data(std::uint32_t r_id, std::uint16_t mx) {
    auto h = of(Op::kData, r_id, 0);
    h.op_flags |= wire::flag::kLast;
    h.mx = mx;
    h.bufx = 1;
    return h;
  }
  void put(std::uint32_t r_id, std::uint16_t mx) { say(data(r_id, mx), kMacA, kMacB, kBytes); }
  // B opens a region to A.
  void open_region(std::uint32_t r_id) {
    auto rmr = of(Op::kRequestMemoryRegion, 0, 7);
    rmr.param = 2;
    rmr.set_t_len(kBytes.size());
    say(rmr, kMacA, kMacB);
    auto mra = of(Op::kMemoryRegionAvailable, 7, r_id);
    mra.param = 2;
    mra.mx = 4;
    mra.bufx = 1;
    mra.set_t_len(kBytes.size());
    say(mra, kMacB, kMacA);
  }
  // A writes to B; nobody says that it has come.
  void write(std::uint32_t i) {
    auto rts = of(Op::kRequestToSend, wire::kNoId, 100 + i);
    rts.param = 1;
    rts.mx = 16;
    rts.set_t_len(kBytes.size());
    say(rts, kMacA, kMacB);
    auto cts = of(Op::kClearToSend, 100 + i, 20'000 + i);
    cts.param = 16;
    cts.mx = 3;
    cts.bufx = 1;
    say(cts, kMacB, kMacA);
    put(20'000 + i, 3);
  }
  void write_many() {
    for (std::uint32_t i = 0; i < kMany; ++i) write(i);
    ASSERT_TRUE(findings.empty()) << line_of(findings.front());
  }
  const std::vector<std::byte> kBytes{100};
};

TEST_F(Forgetting, a_region_stays_known_however_many_transfers_there_are) {
  open_region(kRegion);
  write_many();
  put(kRegion, 4);
  EXPECT_TRUE(findings.empty()) << line_of(findings.front());
  put(kRegion, 5);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kWrongMx);
}

TEST_F(Forgetting, what_names_something_forgotten_is_not_judged_and_that_is_said_once) {
  write_many();
  put(20'000, 3);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, Rule::kForgotten);
  EXPECT_TRUE(findings[0].is_note());
  put(20'001, 3);
  EXPECT_EQ(findings.size(), 1U);
}

TEST_F(Forgetting, the_repeated_grant_of_a_forgotten_transfer_does_not_begin_it_anew) {
  auto cts = of(Op::kClearToSend, 100, 20'000);
  cts.param = 10;
  cts.mx = 3;
  cts.bufx = 1;
  write_many();
  cts.b_num = 5;
  say(cts, kMacB, kMacA);
  auto rs = of(Op::kRequestState, 20'000, 100);
  rs.sync = 3;
  rs.b_num = 4;
  say(rs, kMacA, kMacB);
  auto rsr = of(Op::kRequestStateResponse, 100, 20'000);
  rsr.sync = 3;
  rsr.param = 1;
  rsr.b_num = 4;
  rsr.offset = 5;
  say(rsr, kMacB, kMacA);
  for (const auto& finding : findings) EXPECT_TRUE(finding.is_note()) << line_of(finding);
}

TEST_F(Forgetting, the_answer_to_a_forgotten_question_gives_credit) {
  slots = 300;
  connect(6, 2);
  const auto ask = [&](std::uint32_t sync) {
    auto nop = named(Op::kNoOperation, 6, 2);
    nop.op_flags |= wire::flag::kSendState;
    nop.sync = sync;
    say(nop, kMacA, kMacB);
  };
  for (std::uint32_t i = 0; i < 300; ++i) ask(i);
  auto rsr = named(Op::kRequestStateResponse, 6, 2);
  rsr.sync = 0;
  rsr.param = 300;
  rsr.d_id = rsr.b_num = wire::kNoId;
  say(rsr, kMacB, kMacA);
  ask(300);
  for (const auto& finding : findings) EXPECT_TRUE(finding.is_note()) << line_of(finding);
}

TEST_F(Forgetting, a_state_far_beyond_the_blocks_that_are_kept_costs_no_more_than_they_do) {
  auto rts = of(Op::kRequestToSend, wire::kNoId, 1);
  rts.param = 60'000;
  rts.mx = 10;
  rts.set_t_len(std::uint64_t{1} << 42);
  say(rts, kMacA, kMacB);
  auto cts = of(Op::kClearToSend, 1, 2);
  cts.param = 10;
  cts.mx = 3;
  for (; cts.b_num < 2'100; ++cts.b_num) say(cts, kMacB, kMacA);
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 1; i < 4; ++i) {
    auto rs = of(Op::kRequestState, 2, 1);
    rs.b_num = wire::kNoId;
    rs.sync = i;
    say(rs, kMacA, kMacB);
    auto rsr = of(Op::kRequestStateResponse, 1, 2);
    rsr.b_num = wire::kNoId;
    rsr.sync = i;
    rsr.offset = i << 30;
    say(rsr, kMacB, kMacA);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  for (const auto& finding : findings) EXPECT_TRUE(finding.is_note()) << line_of(finding);
}

}  // namespace
}  // namespace stp::replay::test
