// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_troubles.h"

#include <gtest/gtest.h>

#include "dpdk_port/udp/udp_ways.h"
#include "stp/wire/header.h"

namespace stp::port::udp_troubles_test {
namespace {

using About = UdpTroubles::About;

InternetAddress peer(unsigned number) {
  return InternetAddress::of(Ipv4{0x0a000000 + number}, 8181);
}

TEST(UdpTroubles, WhatConcernsAPeerIsToldOfThatPeerOnly) {
  UdpTroubles troubles;
  troubles.tell(About::kOther, peer(1), "one is closed", kSecond);
  troubles.tell(About::kLength, peer(2), "two is narrow", kSecond);
  troubles.tell(About::kOther, "the socket fails", kSecond);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond), "the socket fails; one is closed");
  EXPECT_EQ(troubles.text_of(peer(2), kSecond), "the socket fails; two is narrow");
  EXPECT_EQ(troubles.text_of(peer(3), kSecond), "the socket fails");
  EXPECT_EQ(troubles.text(kSecond), "the socket fails; two is narrow; one is closed");
}

TEST(UdpTroubles, TheNewestOfAKindCountsForSomeSeconds) {
  UdpTroubles troubles;
  troubles.tell(About::kOther, peer(1), "closed", 0);
  troubles.tell(About::kOther, peer(1), "unreachable", kSecond);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond), "unreachable");
  EXPECT_EQ(troubles.text_of(peer(1), kSecond + UdpTroubles::kTold), "");
  EXPECT_FALSE(troubles.are_about_length(kSecond));
  troubles.tell(About::kLength, peer(1), "narrow", kSecond);
  troubles.sent(peer(1), 1, kSecond);
  EXPECT_TRUE(troubles.are_about_length(kSecond));
  EXPECT_FALSE(troubles.are_about_length(kSecond + UdpTroubles::kTold));
}

TEST(UdpTroubles, WhatAnotherShardHasSeenMeanwhileIsToldAtOnce) {
  UdpTroubles troubles;
  troubles.tell(About::kOther, peer(1), "closed", kSecond + 5);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond), "closed");
}

TEST(UdpTroubles, APeerThatIsHeardHasNoneButThatOfItsWaysLength) {
  UdpTroubles troubles;
  troubles.tell(About::kOther, peer(1), "closed", 0);
  troubles.tell(About::kLength, peer(1), "narrow", 0);
  troubles.tell(About::kOther, peer(2), "closed, too", 0);
  troubles.heard(peer(1), UdpTroubles::kQuiet - 1);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond), "closed; narrow") << "it may be what failed";
  troubles.heard(peer(1), UdpTroubles::kQuiet);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond), "narrow");
  EXPECT_EQ(troubles.text_of(peer(2), kSecond), "closed, too");
}

TEST(UdpTroubles, AnAnswerToWhatWasSentAfterAFaultEndsIt) {
  UdpTroubles troubles;
  const auto tell = [&](Time at) { troubles.tell(About::kOther, peer(1), "closed", at); };
  tell(kSecond);
  troubles.heard(peer(1), kSecond + 1, true);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond + 1), "closed") << "it was on its way";
  troubles.sent(peer(1), 40, kSecond + 2);
  troubles.heard(peer(1), kSecond + 3);
  troubles.heard(peer(2), kSecond + 3, true);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond + 3), "closed") << "nothing has arrived there";
  tell(kSecond + 4);
  troubles.heard(peer(1), kSecond + 5, true);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond + 5), "closed") << "the fault is newer";
  troubles.sent(peer(1), 40, kSecond + 6);
  troubles.heard(peer(1), kSecond + 7, true);
  EXPECT_EQ(troubles.text_of(peer(1), kSecond + 7), "");
}

// What a firewall refuses it reports at once: if it drops that later, its earlier word is old.
TEST(UdpTroubles, WhatIsReportedAtOnceIsOverSoonerThanWhatIsReportedLate) {
  constexpr Time kTried = UdpTroubles::kQuiet, kOver = kTried + UdpTroubles::kSoonReported;
  UdpTroubles troubles;
  troubles.tell(About::kOther, peer(1), "forbidden", 0, 0, UdpTroubles::kSoonReported);
  troubles.sent(peer(1), 100, kTried);
  EXPECT_EQ(troubles.text_of(peer(1), kOver - 1), "forbidden");
  EXPECT_EQ(troubles.text_of(peer(1), kOver), "");
}

// Routers report one of many, so what is sent soon after a report proves nothing.
TEST(UdpTroubles, WhatIsSentAndNotReportedAgainHasHealed) {
  constexpr Time kTried = UdpTroubles::kQuiet, kHealed = kTried + UdpTroubles::kLengthReported;
  UdpTroubles troubles;
  troubles.tell(About::kLength, peer(1), "narrow", 0, 1'000);
  troubles.sent(peer(1), 2'000, kTried - 1);
  troubles.sent(peer(1), 999, kTried);
  troubles.sent(peer(2), 2'000, kTried);
  EXPECT_TRUE(troubles.are_about_length(kHealed)) << "none of these would have been reported";
  troubles.sent(peer(1), 1'000, kTried);
  EXPECT_TRUE(troubles.are_about_length(kHealed - 1)) << "the report may be on its way";
  EXPECT_FALSE(troubles.are_about_length(kHealed));
  EXPECT_EQ(troubles.text(kHealed), "");
  troubles.tell(About::kLength, peer(1), "narrow", kHealed, 1'000);
  EXPECT_TRUE(troubles.are_about_length(kHealed + 1));
}

// Anybody can forge one about anybody.
TEST(UdpTroubles, OfLengthsOnlyReportsAboutPeersOfTheLinkCount) {
  UdpTroubles troubles;
  troubles.tell(About::kLength, peer(1), "forged", 0, 1'000);
  troubles.sent(peer(2), 2'000, 1);
  EXPECT_FALSE(troubles.are_about_length(1));
  EXPECT_EQ(troubles.text_of(peer(1), 1), "forged");
  troubles.sent(peer(1), 1, 2);
  EXPECT_TRUE(troubles.are_about_length(2));
  troubles.tell(About::kLength, peer(1), "again", 3, 1'000);
  EXPECT_TRUE(troubles.are_about_length(3)) << "it is known";
}

// Nobody answers for the address: the kernel says so 3 s after the first datagram.
TEST(UdpTroubles, WhatIsReportedLateIsToldUntilTheNextReport) {
  constexpr Time kTried = UdpTroubles::kQuiet, kLate = kTried + 3 * kSecond;
  constexpr Time kHealed = kTried + UdpTroubles::kReported;
  UdpTroubles troubles;
  troubles.tell(About::kOther, peer(1), "no host", 0);
  troubles.sent(peer(1), 100, kTried);
  EXPECT_EQ(troubles.text_of(peer(1), kLate), "no host");
  EXPECT_EQ(troubles.text_of(peer(1), kHealed - 1), "no host");
  EXPECT_EQ(troubles.text_of(peer(1), kHealed), "");
}

TEST(UdpTroubles, AnInterfaceThatCarriesALongDatagramIsLongEnough) {
  UdpTroubles troubles;
  troubles.tell(About::kLength, "too long for the interface", 0, 1'000);
  troubles.sent(peer(1), 999, 1);
  EXPECT_TRUE(troubles.are_about_length(1));
  troubles.sent(peer(1), 1'000, 1);
  EXPECT_FALSE(troubles.are_about_length(1));
}

// Reports can be forged, about any peer.
TEST(UdpTroubles, AFloodIsBoundedAndHidesNothingOfTheLinkItself) {
  UdpTroubles troubles;
  troubles.tell(About::kLength, "too long for the interface", 0);
  for (unsigned i = 0; i < 10'000; ++i) troubles.tell(About::kOther, peer(i), "forged", i);
  EXPECT_EQ(troubles.text(10'000),
            "too long for the interface; forged; forged; forged; and 61 more of such reports");
  EXPECT_EQ(troubles.text_of(peer(9'999), 10'000), "too long for the interface; forged");
  EXPECT_EQ(troubles.text_of(peer(1), 10'000), "too long for the interface");
}

constexpr MacAddr kThere{{2, 4, 10, 0, 0, 1}}, kElsewhere{{2, 4, 10, 0, 0, 2}};

TEST(UdpWays, AStationThatAnswersAndGetsLongDatagramsIsInDoubt) {
  UdpWays ways;
  const Time time = 100 * kSecond;
  ways.heard(kThere, 72, time);
  EXPECT_EQ(ways.longest(kThere, time), 0U) << "nothing was sent";
  ways.sent(kThere, 8'000, time);
  ways.sent(kThere, 500, time);
  EXPECT_EQ(ways.longest(kThere, time), 0U) << "it does not answer";
  ways.heard(kThere, 72, time + kSecond);
  EXPECT_EQ(ways.longest(kThere, time + kSecond), 8'000U);
  EXPECT_EQ(ways.longest(kElsewhere, time + kSecond), 0U);
  EXPECT_EQ(ways.longest(kThere, time + 5 * kSecond), 0U) << "it has gone";
  ways.heard(kThere, 72, time + 11 * kSecond);
  EXPECT_EQ(ways.longest(kThere, time + 11 * kSecond), 0U) << "that was long ago";
}

TEST(UdpWays, ShortDatagramsRaiseNoDoubt) {
  UdpWays ways;
  ways.sent(kThere, UdpWays::kEverywhere, kSecond);
  ways.heard(kThere, 72, kSecond);
  EXPECT_EQ(ways.longest(kThere, kSecond), 0U);
}

TEST(UdpWays, AStationThatIsAskedForLongDatagramsAndSendsShortOnesIsInDoubt) {
  UdpWays ways;
  const Time time = 100 * kSecond, later = time + UdpWays::kLate;
  EXPECT_FALSE(ways.owes(kThere, time)) << "nothing was asked";
  ways.asked(kThere, time);
  ways.asked(kThere, later);
  EXPECT_FALSE(ways.owes(kThere, later)) << "it does not answer";
  ways.heard(kThere, UdpWays::kEverywhere, time);
  EXPECT_FALSE(ways.owes(kThere, later - 1)) << "they may be on their way";
  EXPECT_TRUE(ways.owes(kThere, later));
  EXPECT_EQ(ways.longest(kThere, later), 0U);
  EXPECT_FALSE(ways.owes(kElsewhere, later));
  ways.heard(kThere, UdpWays::kEverywhere + 1, later);
  EXPECT_FALSE(ways.owes(kThere, later)) << "they come";
  ways.asked(kThere, later);
  EXPECT_FALSE(ways.owes(kThere, later + UdpWays::kLate - 1)) << "counted anew";
  EXPECT_TRUE(ways.owes(kThere, later + UdpWays::kLate));
}

// Such as one whose stpd was started anew: nobody there knows what was asked before.
TEST(UdpWays, AStationThatBeginsAConnectionWithALongDatagramOwesNothing) {
  UdpWays ways;
  const Time time = 100 * kSecond, later = time + 2 * UdpWays::kLate;
  ways.asked(kThere, time);
  ways.heard(kThere, UdpWays::kEverywhere + 1, time, true);
  ways.asked(kThere, time);
  ways.asked(kThere, later);
  ways.heard(kThere, 72, later);
  EXPECT_FALSE(ways.owes(kThere, later));
  ways.asked(kThere, later + UdpWays::kSent);
  ways.heard(kThere, 72, later + UdpWays::kSent);
  EXPECT_TRUE(ways.owes(kThere, later + UdpWays::kSent)) << "the way may have become another one";
}

TEST(UdpWays, WhatAsksForMoreThanEveryWayCarriesIsKnown) {
  const auto asks = [](wire::Op op, std::uint16_t param) {
    wire::Header header;
    header.op_flags = wire::op_flags(op, 0);
    header.param = param;
    std::array<std::byte, wire::kHeaderSize> frame{};
    wire::encode(header, frame.data());
    return UdpWays::asks_for_long(frame);
  };
  EXPECT_TRUE(asks(wire::Op::kClearToSend, 12));
  EXPECT_FALSE(asks(wire::Op::kClearToSend, 10)) << "1,024 bytes";
  EXPECT_FALSE(asks(wire::Op::kClearToSend, 0xffff)) << "no exponent";
  EXPECT_TRUE(asks(wire::Op::kGet, 8'192));
  EXPECT_TRUE(asks(wire::Op::kGet, 0)) << "65,536 bytes";
  EXPECT_FALSE(asks(wire::Op::kGet, 8));
  EXPECT_FALSE(asks(wire::Op::kData, 8'192));
  EXPECT_FALSE(UdpWays::asks_for_long({}));
}

TEST(UdpWays, WhatNobodySendsUnaskedIsAnAnswer) {
  const auto answers = [](wire::Op op, unsigned flags = 0, std::uint32_t key = 0) {
    wire::Header header;
    header.op_flags = wire::op_flags(op, static_cast<std::uint16_t>(flags));
    header.d_key = key;
    std::array<std::byte, wire::kHeaderSize> frame{};
    wire::encode(header, frame.data());
    return UdpWays::answers(frame);
  };
  for (const auto op : {wire::Op::kConnectionAnswer, wire::Op::kRequestStateResponse})
    EXPECT_TRUE(answers(op));
  for (const auto op : {wire::Op::kRequestConnection, wire::Op::kClearToSend, wire::Op::kData})
    EXPECT_FALSE(answers(op));
  EXPECT_FALSE(answers(wire::Op::kRequestStateResponse, wire::flag::kReject))
      << "it asks who dials";
  EXPECT_TRUE(answers(wire::Op::kRequestStateResponse, wire::flag::kReject, 7));
  EXPECT_FALSE(UdpWays::answers({}));
}

TEST(UdpWays, StrangersTakeNoPlace) {
  UdpWays ways;
  ways.sent(kThere, 8'000, kSecond);
  ways.heard(kThere, 72, kSecond);
  for (std::uint64_t i = 0; i < 100'000; ++i)
    ways.heard(MacAddr::from_u64(0x0204'0b00'0000 + i), 72, kSecond);
  EXPECT_EQ(ways.longest(kThere, kSecond), 8'000U);
}

}  // namespace
}  // namespace stp::port::udp_troubles_test
