// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/address_guard.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace stp::port {
namespace {

using Speech = AddressGuard::Speech;
constexpr MacAddr kOther{{2, 0, 0, 0, 0, 2}}, kThird{{2, 0, 0, 0, 0, 3}};
constexpr Ipv4 kOurIp{0x0a090001}, kOtherIp{0x0a090002}, kNobody{};
constexpr Time kStart = 5 * kSecond;

// What the guard sends until then, with the times.
std::vector<std::pair<Speech, Time>> said(AddressGuard& guard, Time from, Time until) {
  std::vector<std::pair<Speech, Time>> all;
  for (Time now = from; now < until; now += 10 * kMillisecond) {
    if (const Speech speech = guard.due(now); speech != Speech::kNone) {
      all.emplace_back(speech, now - kStart);
    }
  }
  return all;
}

TEST(AddressGuard, AsksThreeTimesThenAnnouncesTwice) {
  AddressGuard guard(true);
  guard.begin(kOurIp, kStart);
  using P = std::pair<Speech, Time>;
  EXPECT_EQ(said(guard, kStart, kStart + kSecond * 60),
            (std::vector<P>{{Speech::kProbe, 500 * kMillisecond},
                            {Speech::kProbe, 2000 * kMillisecond},
                            {Speech::kProbe, 3500 * kMillisecond},
                            {Speech::kAnnouncement, 5500 * kMillisecond},
                            {Speech::kAnnouncement, 7500 * kMillisecond}}));
  EXPECT_FALSE(guard.conflict());
}

TEST(AddressGuard, SaysNothingForAnAddressOfTheKernelsOrNone) {
  AddressGuard kernels(false), none(true);
  kernels.begin(kOurIp, kStart);
  none.begin(std::nullopt, kStart);
  EXPECT_TRUE(said(kernels, kStart, kStart + kSecond * 60).empty());
  EXPECT_TRUE(said(none, kStart, kStart + kSecond * 60).empty());
  none.hear(kOther, kNobody, kNobody, kStart);
  EXPECT_FALSE(none.conflict());
}

TEST(AddressGuard, WhoUsesTheAddressIsNamedAndTheFirstStaysNamed) {
  for (const bool owns : {true, false}) {
    AddressGuard guard(owns);
    guard.begin(kOurIp, kStart);
    guard.hear(kThird, kOtherIp, kOurIp, kStart);
    EXPECT_FALSE(guard.conflict());
    guard.hear(kOther, kOurIp, kOtherIp, kStart);
    guard.hear(kThird, kOurIp, kOtherIp, kStart);
    EXPECT_EQ(guard.conflict(), kOther);
  }
}

TEST(AddressGuard, WhoAsksForItAsNobodyMeansToTakeItWhileWeAskOurselves) {
  AddressGuard guard(true);
  guard.begin(kOurIp, kStart);
  guard.hear(kOther, kNobody, kOurIp, kStart);
  EXPECT_EQ(guard.conflict(), kOther);

  AddressGuard settled(true);
  settled.begin(kOurIp, kStart);
  said(settled, kStart, kStart + 20 * kSecond);
  settled.hear(kOther, kNobody, kOurIp, kStart + 20 * kSecond);  // it will be answered
  EXPECT_FALSE(settled.conflict());
}

TEST(AddressGuard, DefendsItselfOnceInTenSecondsHoweverMuchIsHeard) {
  AddressGuard guard(true);
  guard.begin(kOurIp, kStart);
  unsigned announcements = 0;
  for (Time now = kStart; now < kStart + 35 * kSecond; now += 10 * kMillisecond) {
    guard.hear(kOther, kOurIp, kOurIp, now);
    announcements += guard.due(now) == Speech::kAnnouncement ? 1 : 0;
  }
  EXPECT_EQ(announcements, 4U);
  EXPECT_EQ(guard.conflict(), kOther);
}

TEST(AddressGuard, AConflictIsOverWhenNobodyAnswersForItAnyMore) {
  for (const bool owns : {true, false}) {
    AddressGuard guard(owns);
    guard.begin(kOurIp, kStart);
    guard.hear(kOther, kOurIp, kOtherIp, kStart);
    said(guard, kStart, kStart + 25 * kSecond);
    guard.hear(kOther, kOurIp, kOtherIp, kStart + 25 * kSecond);
    said(guard, kStart + 25 * kSecond, kStart + 50 * kSecond);
    EXPECT_TRUE(guard.conflict());
    const auto last = said(guard, kStart + 50 * kSecond, kStart + 90 * kSecond);
    EXPECT_FALSE(guard.conflict());
    EXPECT_LE(last.size(), 3U);
  }
}

TEST(AddressGuard, AnotherAddressBeginsWithoutAConflict) {
  AddressGuard guard(false);
  guard.begin(kOurIp, kStart);
  guard.hear(kOther, kOurIp, kOtherIp, kStart);
  guard.begin(kOurIp, kStart + kSecond);  // the link came up again
  EXPECT_TRUE(guard.conflict());
  guard.begin(kOtherIp, kStart + 2 * kSecond);
  EXPECT_FALSE(guard.conflict());
}

}  // namespace
}  // namespace stp::port
