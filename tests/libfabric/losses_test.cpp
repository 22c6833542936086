// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>

#include "libst/libfabric/rdm/losses.h"

namespace stp::test {
namespace {

using fi::Address;
using fi::rdm::Losses;

Address peer(std::uint32_t number) {
  Address address;
  address.scope = number;
  address.port = 1;
  return address;
}

TEST(RdmLosses, OneOfAMessageIsToldOnce) {
  Losses losses;
  losses.add_sent(peer(1), -ETIMEDOUT);
  EXPECT_EQ(losses.take_for_send(peer(2)), 0);
  EXPECT_EQ(losses.take_for_send(peer(1)), -ETIMEDOUT);
  EXPECT_EQ(losses.take_for_receive(peer(1)), 0);
  EXPECT_TRUE(losses.empty());
}

TEST(RdmLosses, SilenceIsToldToEachReceiveUntilTheProgramSends) {
  Losses losses;
  losses.add_silence(peer(1), -ETIMEDOUT);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(losses.take_for_receive(peer(1)), -ETIMEDOUT);
  EXPECT_EQ(losses.take_for_send(peer(1)), 0);
  EXPECT_TRUE(losses.empty());
}

TEST(RdmLosses, HoweverManyPeersAreSilentNoneIsSwallowed) {
  constexpr std::uint32_t kPeers = 5'000;
  Losses losses;
  for (std::uint32_t i = 0; i < kPeers; ++i) losses.add_silence(peer(i), -ETIMEDOUT);
  losses.add_sent(peer(kPeers), -ECONNRESET);
  EXPECT_EQ(losses.take_for_send(peer(kPeers)), -ECONNRESET);
  EXPECT_EQ(losses.take_for_receive(peer(kPeers - 1)), -ETIMEDOUT);
}

TEST(RdmLosses, OfPeersThatTheProgramCannotNameAreForgotten) {
  Losses losses;
  losses.add_silence(peer(1), -ETIMEDOUT);
  losses.add_sent(peer(2), -ETIMEDOUT);
  losses.keep([](const Address& each) { return each == peer(2); });
  EXPECT_EQ(losses.take_for_receive(peer(1)), 0);
  EXPECT_EQ(losses.take_for_receive(peer(2)), -ETIMEDOUT);
}

}  // namespace
}  // namespace stp::test
