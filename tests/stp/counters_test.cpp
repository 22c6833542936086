// SPDX-License-Identifier: BSD-3-Clause
#include "stp/counters.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace stp {
namespace {

TEST(Counters, StartAtZeroAndAddUpEachForItself) {
  Counters counters;
  counters.add(Counter::kBadKey);
  counters.add(Counter::kBadKey);
  counters.add(Counter::kRxBytes, 1500);
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    const std::uint64_t expected = counter == Counter::kBadKey    ? 2
                                   : counter == Counter::kRxBytes ? 1500
                                                                  : 0;
    EXPECT_EQ(counters.get(counter), expected) << Counters::name(counter);
  }
}

TEST(Counters, HaveNamesOfTheirOwnInLowerCaseAndADescription) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    const std::string name = Counters::name(counter);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    EXPECT_FALSE(std::string(Counters::description(counter)).empty()) << name;
  }
  EXPECT_STREQ(Counters::name(Counter::kBadPort), "bad_port");
  EXPECT_STREQ(Counters::description(Counter::kBadPort), "D_Port names no connection or endpoint");
}

// protocol: 12.1
TEST(Counters, EachReasonToDropAFrameHasTheCounterOfItsName) {
  EXPECT_STREQ(name_of(DropReason::kNone), "none");
  EXPECT_STREQ(name_of(DropReason::kBadPort), "bad_port");
#define STP_NO_REASON(id, name, unit, text)
#define STP_REASON(id, name, unit, text) EXPECT_EQ(counter_of(DropReason::k##id), Counter::k##id);
  STP_COUNTERS(STP_NO_REASON, STP_REASON)
#undef STP_REASON
#undef STP_NO_REASON
}

TEST(Counters, DropsAreTheFramesOfWhichNothingCame) {
  const std::set<Counter> no_drops = {
      Counter::kRxFrames,     Counter::kRxBytes,     Counter::kRxControl,
      Counter::kRxStus,       Counter::kRxDataBytes, Counter::kRxBlocks,
      Counter::kTxFrames,     Counter::kTxBytes,     Counter::kTxControl,
      Counter::kTxStus,       Counter::kTxDataBytes, Counter::kNoListener,
      Counter::kNoResources,  Counter::kDuplicateRc, Counter::kGhostCa,
      Counter::kAnswersFull,  Counter::kRetries,     Counter::kVcOpened,
      Counter::kVcClosed,     Counter::kVcRefused,   Counter::kVcFailed,
      Counter::kSlotWaits,    Counter::kTxRefused,   Counter::kRingBroken,
      Counter::kVcUnanswered, Counter::kRxGets,      Counter::kRxFetchOps,
      Counter::kGetRefused,   Counter::kCtsRepeated, Counter::kCtsHeld,
      Counter::kRcRejected,   Counter::kRcUndecided, Counter::kBlocksAbandoned,
      Counter::kRcCookies,    Counter::kRcProven,    Counter::kUnprovenEnded,
      Counter::kAddressFull,  Counter::kWindowsFull, Counter::kPortHeld,
      Counter::kWaysShort,    Counter::kRxMarked};
#define STP_NO_DROP(id, name, unit, text) EXPECT_TRUE(no_drops.contains(Counter::k##id)) << #name;
#define STP_DROP(id, name, unit, text) EXPECT_FALSE(no_drops.contains(Counter::k##id)) << #name;
  STP_COUNTERS(STP_NO_DROP, STP_DROP)
#undef STP_DROP
#undef STP_NO_DROP
}

}  // namespace
}  // namespace stp
