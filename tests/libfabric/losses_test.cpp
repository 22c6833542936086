// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>

#include "libst/libfabric/rdm/endpoint.h"

namespace stp::test {
namespace {

using fi::Address;
using fi::rdm::Losses;

constexpr std::uint64_t kSince = 5;

Address peer(std::uint32_t number) {
  Address address;
  address.scope = number;
  address.port = 1;
  return address;
}

TEST(RdmLosses, OneOfAMessageIsToldOnce) {
  Losses losses;
  losses.add_sent(peer(1), -ETIMEDOUT, kSince);
  EXPECT_EQ(losses.take_for_send(peer(2)), 0);
  EXPECT_EQ(losses.take_for_send(peer(1)), -ETIMEDOUT);
  EXPECT_EQ(losses.take_for_receive(peer(1)), 0);
  EXPECT_TRUE(losses.empty());
}

TEST(RdmLosses, SilenceIsToldToEachReceiveUntilTheProgramSends) {
  Losses losses;
  losses.add_silence(peer(1), -ETIMEDOUT, kSince);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(losses.take_for_receive(peer(1)), -ETIMEDOUT);
  EXPECT_EQ(losses.take_for_send(peer(1)), 0);
  EXPECT_EQ(losses.take_for_receive(peer(1)), 0);
  losses.end_silence(peer(1));
  EXPECT_TRUE(losses.empty());
}

// Whoever repeats what has failed hears of it by a call, not by its operations alone.
TEST(RdmLosses, WhoIsSilentAndIsNotReachedIsToldByTheNextCall) {
  Losses losses;
  losses.add_unreached(peer(1), -ETIMEDOUT);  // it was not silent before
  EXPECT_TRUE(losses.empty());
  losses.add_silence(peer(1), -ETIMEDOUT, kSince);
  EXPECT_EQ(losses.take_for_send(peer(1)), 0);
  losses.add_unreached(peer(1), -EHOSTUNREACH);
  EXPECT_EQ(losses.take_for_send(peer(1)), -EHOSTUNREACH);
  EXPECT_EQ(losses.take_for_send(peer(1)), 0);
  EXPECT_TRUE(losses.empty());
}

TEST(RdmLosses, HoweverManyPeersAreSilentNoneIsSwallowed) {
  constexpr std::uint32_t kPeers = 5'000;
  Losses losses;
  for (std::uint32_t i = 0; i < kPeers; ++i) losses.add_silence(peer(i), -ETIMEDOUT, kSince);
  losses.add_sent(peer(kPeers), -ECONNRESET, kSince);
  EXPECT_EQ(losses.take_for_send(peer(kPeers)), -ECONNRESET);
  EXPECT_EQ(losses.take_for_receive(peer(kPeers - 1)), -ETIMEDOUT);
}

TEST(RdmLosses, OfPeersThatTheProgramHasRemovedAreForgotten) {
  Losses losses;
  for (std::uint32_t i = 0; i < 3; ++i) losses.add_silence(peer(i), -ETIMEDOUT, i + 5);
  // One is not there any more, and one is there again.
  losses.forget_removed([](const Address& each) -> std::uint64_t {
    if (each == peer(0)) return 0;
    return each == peer(1) ? 9 : 7;
  });
  EXPECT_EQ(losses.take_for_receive(peer(0)), 0);
  EXPECT_EQ(losses.take_for_receive(peer(1)), 0);
  EXPECT_EQ(losses.take_for_receive(peer(2)), -ETIMEDOUT);
}

TEST(RdmLosses, AnEarlierOneIsNotTakenForThatOfWhoIsThereAgain) {
  Losses losses;
  losses.add_silence(peer(1), -ETIMEDOUT, 5);
  losses.add_sent(peer(1), -ECONNRESET, 6);
  EXPECT_EQ(losses.take_for_receive(peer(1)), -ECONNRESET);
  EXPECT_TRUE(losses.empty());
}

}  // namespace
}  // namespace stp::test
