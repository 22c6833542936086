// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/read_requests.h"

#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

Completion request(std::uint32_t number) {
  Completion c{};
  c.kind = Completion::Kind::kReadRequest;
  c.request = number;
  c.length = 100;
  return c;
}

TEST_F(TwoSessions, ReadRequestsAreReportedAsTheQueueHasPlaces) {
  ReadRequests requests;
  constexpr std::uint32_t kFree = kPlaces - 2;  // two are for the connection's own events
  for (std::uint32_t i = 1; i <= kFree + 1; ++i) ASSERT_TRUE(requests.add(request(i)));
  requests.tell(a.reports);
  for (std::uint32_t i = 1; i <= kFree; ++i) {
    const auto told = a.event();
    EXPECT_EQ(told.kind, unsigned{STM_READ_REQUEST});
    EXPECT_EQ(told.request, i);
    EXPECT_EQ(told.length, 100U);
  }
  EXPECT_FALSE(requests.empty());
  EXPECT_EQ(a.event().kind, 0U);
  requests.tell(a.reports);
  EXPECT_EQ(a.event().request, kFree + 1);
  EXPECT_TRUE(requests.empty());
}

// A peer may end a request and send another one, as often as it likes.
TEST_F(TwoSessions, ReadRequestsThatCannotBeReportedAreBounded) {
  ReadRequests requests;
  for (std::uint32_t i = 1; i <= ReadRequests::kMost; ++i) ASSERT_TRUE(requests.add(request(i)));
  EXPECT_FALSE(requests.add(request(0)));
  requests.clear();
  EXPECT_TRUE(requests.add(request(0)));
}

}  // namespace
}  // namespace stp::managed
