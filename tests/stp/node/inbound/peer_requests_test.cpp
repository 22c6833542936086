// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/peer_requests.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

wire::RequestToSend rts(std::uint32_t i_id, std::uint64_t t_len) {
  return {.max_block = 20, .t_len = t_len, .i_id = i_id};
}

TEST(PeerRequests, an_offer_is_fresh_until_a_transfer_of_it_begins) {
  PeerRequests requests;
  EXPECT_EQ(requests.offer(1), nullptr);
  requests.offered(rts(1, 100), false);
  ASSERT_NE(requests.offer(1), nullptr);
  EXPECT_EQ(requests.offer(1)->t_len, 100U);
  EXPECT_TRUE(requests.offer(1)->fresh);
  requests.begun(1);
  EXPECT_FALSE(requests.offer(1)->fresh);
  requests.offered(rts(1, 100), true);  // the RTS is repeated during the Transfer
  EXPECT_FALSE(requests.offer(1)->fresh);
  requests.offered(rts(1, 200), false);  // another Transfer of the same name
  EXPECT_TRUE(requests.offer(1)->fresh);
  EXPECT_EQ(requests.offer(1)->t_len, 200U);
}

TEST(PeerRequests, of_too_many_offers_the_oldest_is_forgotten) {
  PeerRequests requests;
  for (std::uint32_t i = 0; i <= PeerRequests::kMaxOffers; ++i) requests.offered(rts(i, 1), false);
  EXPECT_EQ(requests.offer(0), nullptr);
  EXPECT_NE(requests.offer(1), nullptr);
  EXPECT_NE(requests.offer(PeerRequests::kMaxOffers), nullptr);
}

// protocol: 7.12
TEST(PeerRequests, what_has_ended_has_ended_for_the_name_that_the_end_gave) {
  PeerRequests requests;
  requests.ended(1, 10);
  requests.ended(2, wire::kNoId);  // the peer did not know this side's id
  EXPECT_TRUE(requests.has_ended(1, 10));
  EXPECT_FALSE(requests.has_ended(1, 11));
  EXPECT_TRUE(requests.has_ended(2, 11));
  EXPECT_FALSE(requests.has_ended(3, 10));
  requests.forget_ended(1);
  EXPECT_FALSE(requests.has_ended(1, 10));
  for (std::uint32_t i = 0; i < PeerRequests::kMaxEnded; ++i) requests.ended(100 + i, 1);
  EXPECT_FALSE(requests.has_ended(2, 11));  // displaced by later ones
}

}  // namespace
}  // namespace stp::test
