// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/arp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace stp::port::arp_test {
namespace {

using Frame = std::vector<std::byte>;

constexpr MacAddr kOurs{{2, 0, 0, 0, 0, 1}}, kTheirs{{2, 0, 0, 0, 0, 2}};
constexpr MacAddr kBroadcast{{255, 255, 255, 255, 255, 255}};
constexpr Ipv4 kOurIp{0x0a090001}, kTheirIp{0x0a090002}, kOtherIp{0x0a090003};
constexpr Time kStart = 5 * kSecond;
enum Operation : std::uint8_t { kRequest = 1, kReply = 2 };

ArpConfig config() {
  return {kOurs, kOurIp, true, std::nullopt};
}

void append(Frame& frame, std::initializer_list<unsigned> bytes) {
  for (const unsigned b : bytes) frame.push_back(static_cast<std::byte>(b));
}
void append(Frame& frame, const MacAddr& mac) {
  for (const auto o : mac.octets) frame.push_back(std::byte{o});
}
void append(Frame& frame, Ipv4 ip) {
  const std::uint32_t v = ip.value;
  append(frame, {v >> 24 & 255, v >> 16 & 255, v >> 8 & 255, v & 255});
}

// The bytes of an ARP frame, field by field.
Frame arp(const MacAddr& to, Operation operation, const MacAddr& sender, Ipv4 sender_ip,
          const MacAddr& target, Ipv4 target_ip, unsigned vlan = 0) {
  Frame frame;
  append(frame, to);
  append(frame, sender);
  if (vlan != 0) append(frame, {0x81, 0x00, vlan >> 8, vlan & 255});
  append(frame, {0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, operation});
  append(frame, sender);
  append(frame, sender_ip);
  append(frame, target);
  append(frame, target_ip);
  frame.resize(frame.size() + 18);  // to Ethernet's minimum of 60 bytes, untagged
  return frame;
}
Frame reply_to_us(const MacAddr& mac, Ipv4 ip) {
  return arp(kOurs, kReply, mac, ip, kOurs, kOurIp);
}

std::vector<Frame> sent(Arp& table) {
  std::vector<Frame> frames;
  Frame room(Arp::kFrameSize, std::byte{0xee});
  while (const std::size_t length = table.take(room.data())) {
    frames.emplace_back(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return frames;
}

TEST(Arp, ResolvesOurOwnAddressWithoutAsking) {
  Arp table(config());
  EXPECT_EQ(table.resolve(kOurIp, kStart), kOurs);
  EXPECT_EQ(table.resolve(*parse_ipv4("127.0.0.1"), kStart), kOurs);
  EXPECT_TRUE(sent(table).empty());
}

TEST(Arp, AsksEverybodyAndLearnsFromTheReply) {
  Arp table(config());
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
  const auto frames = sent(table);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0], arp(kBroadcast, kRequest, kOurs, kOurIp, MacAddr{}, kTheirIp));

  EXPECT_TRUE(table.receive(reply_to_us(kTheirs, kTheirIp), kStart));
  EXPECT_EQ(table.resolve(kTheirIp, kStart), kTheirs);
  EXPECT_TRUE(sent(table).empty());
  EXPECT_EQ(table.counters().requests_sent, 1U);
  EXPECT_EQ(table.counters().learned, 1U);
}

TEST(Arp, WithoutAnAddressOfItsOwnItProbes) {
  Arp table({kOurs, std::nullopt, false, std::nullopt});
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
  const auto frames = sent(table);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0], arp(kBroadcast, kRequest, kOurs, Ipv4{0}, MacAddr{}, kTheirIp));
}

TEST(Arp, AsksOncePerIntervalAndAddress) {
  Arp table(config());
  for (Time t = 0; t < Arp::kAskInterval; t += kMillisecond) table.resolve(kTheirIp, kStart + t);
  EXPECT_EQ(sent(table).size(), 1U);
  table.resolve(kTheirIp, kStart + Arp::kAskInterval);
  table.resolve(kOtherIp, kStart + Arp::kAskInterval);
  EXPECT_EQ(sent(table).size(), 2U);
}

TEST(Arp, ForgetsAfterAMinuteAndAsksAgain) {
  Arp table(config());
  table.resolve(kTheirIp, kStart);
  table.receive(reply_to_us(kTheirs, kTheirIp), kStart);
  EXPECT_TRUE(table.resolve(kTheirIp, kStart + Arp::kLifetime - 1));
  EXPECT_EQ(sent(table).size(), 1U);
  EXPECT_FALSE(table.resolve(kTheirIp, kStart + Arp::kLifetime));
  EXPECT_EQ(sent(table).size(), 1U);
}

TEST(Arp, AStationThatChangesItsMacIsFollowed) {
  Arp table(config());
  table.resolve(kTheirIp, kStart);
  table.receive(reply_to_us(kTheirs, kTheirIp), kStart);
  constexpr MacAddr kNew{{2, 0, 0, 0, 0, 9}};
  table.receive(reply_to_us(kNew, kTheirIp), kStart + kSecond);
  EXPECT_EQ(table.resolve(kTheirIp, kStart + kSecond), kNew);
}

TEST(Arp, AnswersForOurAddressAndLearnsWhoAsks) {
  Arp table(config());
  EXPECT_TRUE(
      table.receive(arp(kBroadcast, kRequest, kTheirs, kTheirIp, MacAddr{}, kOurIp), kStart));
  const auto frames = sent(table);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0], arp(kTheirs, kReply, kOurs, kOurIp, kTheirs, kTheirIp));
  EXPECT_EQ(table.resolve(kTheirIp, kStart), kTheirs);
  EXPECT_EQ(table.counters().answers_sent, 1U);
}

TEST(Arp, AnswersAProbeButLearnsNothingFromIt) {
  Arp table(config());
  table.receive(arp(kBroadcast, kRequest, kTheirs, Ipv4{0}, MacAddr{}, kOurIp), kStart);
  EXPECT_EQ(sent(table).size(), 1U);
  EXPECT_EQ(table.counters().learned, 0U);
}

TEST(Arp, LeavesAnsweringToTheKernelWhereTheAddressIsTheKernels) {
  ArpConfig kernel = config();
  kernel.answers = false;
  Arp table(kernel);
  table.receive(arp(kBroadcast, kRequest, kTheirs, kTheirIp, MacAddr{}, kOurIp), kStart);
  EXPECT_TRUE(sent(table).empty());
  EXPECT_EQ(table.resolve(kTheirIp, kStart), kTheirs);
}

TEST(Arp, RequestsForOthersAreNeitherAnsweredNorLearned) {
  Arp table(config());
  table.receive(arp(kBroadcast, kRequest, kTheirs, kTheirIp, MacAddr{}, kOtherIp), kStart);
  EXPECT_TRUE(sent(table).empty());
  EXPECT_EQ(table.counters().ignored, 1U);
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
}

TEST(Arp, RepliesNobodyAskedForTeachNothing) {
  Arp table(config());
  table.receive(reply_to_us(kTheirs, kTheirIp), kStart);
  EXPECT_EQ(table.counters().ignored, 1U);
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
}

TEST(Arp, GroupAddressesAndOurOwnAreNeverLearned) {
  Arp table(config());
  table.resolve(kTheirIp, kStart);
  for (const MacAddr& bad : {MacAddr{{1, 0, 0x5e, 0, 0, 1}}, kBroadcast, MacAddr{}, kOurs}) {
    table.receive(reply_to_us(bad, kTheirIp), kStart);
  }
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
  EXPECT_EQ(table.counters().ignored, 4U);
}

TEST(Arp, TagsWhatItSendsAndReadsTaggedFrames) {
  ArpConfig tagged = config();
  tagged.vlan = 0x123;
  Arp table(tagged);
  table.resolve(kTheirIp, kStart);
  const auto frames = sent(table);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0], arp(kBroadcast, kRequest, kOurs, kOurIp, MacAddr{}, kTheirIp, 0x123));
  EXPECT_TRUE(table.receive(arp(kOurs, kReply, kTheirs, kTheirIp, kOurs, kOurIp, 0x123), kStart));
  EXPECT_EQ(table.resolve(kTheirIp, kStart), kTheirs);
}

TEST(Arp, AStationWithOurMacAddressIsNoticedUntilItIsSilent) {
  Arp table(config());
  table.receive(arp(kBroadcast, kRequest, kOurs, kOurIp, MacAddr{}, kTheirIp),
                kStart);  // reflected
  table.receive(arp(kBroadcast, kRequest, kOurs, Ipv4{}, MacAddr{}, kTheirIp), kStart);  // a probe
  EXPECT_EQ(table.twin(), std::nullopt);
  table.receive(arp(kBroadcast, kRequest, kOurs, kTheirIp, MacAddr{}, kOurIp), kStart);
  EXPECT_EQ(table.twin(), kTheirIp);
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
  table.tend(kStart + Arp::kLifetime - 1);
  EXPECT_EQ(table.twin(), kTheirIp);
  table.tend(kStart + Arp::kLifetime);
  EXPECT_EQ(table.twin(), std::nullopt);
}

TEST(Arp, OtherFramesAreLeftAlone) {
  Arp table(config());
  Frame stp = reply_to_us(kTheirs, kTheirIp);
  stp[12] = stp[13] = std::byte{0x81};
  EXPECT_FALSE(table.receive(stp, kStart));
  EXPECT_FALSE(table.receive({}, kStart));
}

TEST(Arp, TruncatedFramesOfEveryLengthAreHarmless) {
  Arp table(config());
  table.resolve(kTheirIp, kStart);
  for (const unsigned vlan : {0U, 7U}) {
    const Frame whole = arp(kOurs, kReply, kTheirs, kTheirIp, kOurs, kOurIp, vlan);
    const std::size_t packet_end = whole.size() - 18;
    for (std::size_t length = 0; length < packet_end; ++length) {
      const Frame part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      table.receive(part, kStart);
    }
  }
  EXPECT_FALSE(table.resolve(kTheirIp, kStart));
}

TEST(Arp, FramesForOtherNetworksAreIgnored) {
  const Frame whole = reply_to_us(kTheirs, kTheirIp);
  for (const std::size_t at : {14U, 15U, 16U, 17U, 18U, 19U}) {
    Arp table(config());
    table.resolve(kTheirIp, kStart);
    Frame changed = whole;
    changed[at] ^= std::byte{0x10};
    EXPECT_TRUE(table.receive(changed, kStart));
    EXPECT_FALSE(table.resolve(kTheirIp, kStart)) << "byte " << at;
  }
}

TEST(Arp, AFullTableGivesUpItsOldestEntry) {
  Arp table(config());
  for (std::uint32_t i = 0; i <= Arp::kMaxEntries; ++i) {
    const Ipv4 ip{0x0b000000 + i};
    table.resolve(ip, kStart + i);
    table.receive(reply_to_us(kTheirs, ip), kStart + i);
    sent(table);
  }
  const Time end = kStart + Arp::kMaxEntries;
  EXPECT_TRUE(table.resolve(Ipv4{0x0b000001}, end));
  EXPECT_TRUE(table.resolve(Ipv4{0x0b000000 + Arp::kMaxEntries}, end));
  EXPECT_FALSE(table.resolve(Ipv4{0x0b000000}, end));
}

TEST(Arp, AFloodOfRequestsFillsNoMemory) {
  Arp table(config());
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    table.receive(arp(kBroadcast, kRequest, kTheirs, Ipv4{0x0b000000 + i}, MacAddr{}, kOurIp),
                  kStart);
  }
  EXPECT_EQ(sent(table).size(), Arp::kMaxWaiting);
  EXPECT_EQ(table.counters().dropped, 10'000 - Arp::kMaxWaiting);
}

TEST(Arp, AFloodOfRequestsKeepsUsNeitherFromAskingNorFromKnowing) {
  Arp table(config());
  table.resolve(kTheirIp, kStart);
  table.receive(reply_to_us(kTheirs, kTheirIp), kStart);
  sent(table);
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    table.receive(arp(kBroadcast, kRequest, kTheirs, Ipv4{0x0b000000 + i}, MacAddr{}, kOurIp),
                  kStart + i);
  }
  EXPECT_EQ(table.resolve(kTheirIp, kStart + 10'000), kTheirs);
  table.resolve(kOtherIp, kStart + 10'000);
  EXPECT_EQ(table.counters().requests_sent, 1U);
  sent(table);
  EXPECT_EQ(table.counters().requests_sent, 2U);
}

TEST(Arp, QuestionsAboutNobodyKeepWhatIsKnown) {
  Arp table(config());
  table.resolve(kTheirIp, kStart);
  table.receive(reply_to_us(kTheirs, kTheirIp), kStart);
  for (std::uint32_t i = 0; i < 10'000; ++i) table.resolve(Ipv4{0x0b000000 + i}, kStart + 1 + i);
  EXPECT_EQ(table.resolve(kTheirIp, kStart + 10'001), kTheirs);
}

TEST(Arp, AQuestionThatFoundNoRoomIsAskedAtTheNextCall) {
  Arp table(config());
  for (std::uint32_t i = 0; i < Arp::kMaxWaiting; ++i) table.resolve(Ipv4{0x0b000000 + i}, kStart);
  table.resolve(kTheirIp, kStart);
  EXPECT_EQ(sent(table).size(), Arp::kMaxWaiting);
  table.resolve(kTheirIp, kStart + 1);
  EXPECT_EQ(sent(table).size(), 1U);
}

TEST(Arp, AStationThatWasNamedIsNotAskedForAndNobodyChangesIt) {
  auto with_station = config();
  with_station.fixed[kTheirIp] = kTheirs;
  Arp table(with_station);
  EXPECT_EQ(table.resolve(kTheirIp, kStart), kTheirs);
  EXPECT_TRUE(sent(table).empty());
  constexpr MacAddr kImpostor{{2, 0, 0, 0, 0, 6}};
  table.receive(reply_to_us(kImpostor, kTheirIp), kStart);
  EXPECT_EQ(table.resolve(kTheirIp, kStart), kTheirs);
}

}  // namespace
}  // namespace stp::port::arp_test

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
