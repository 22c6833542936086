// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/reports.h"

#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

TEST_F(TwoSessions, ReportsNeedPlacesForTheBeginningAndTheEnd) {
  a.reports.close();
  ASSERT_TRUE(a.queue->reserve(kPlaces - 1));
  EXPECT_EQ(a.reports.open(a.outlets()), -EAGAIN);
  EXPECT_FALSE(a.reports.is_open());
  a.queue->release(1);
  auto outlets = a.outlets();
  outlets.context = 9;
  ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  EXPECT_FALSE(a.queue->reserve(1));
  a.reports.set_handle(0x77);
  a.reports.tell(STM_CONNECTED, 0);
  a.reports.tell(STM_FAILED, -ETIMEDOUT);
  a.reports.tell(STM_FAILED, -EPROTO);  // no place is left for it
  EXPECT_EQ(a.event().kind, unsigned{STM_CONNECTED});
  const auto end = a.event();
  EXPECT_EQ(end.status, -ETIMEDOUT);
  EXPECT_EQ(end.context, 9U);
  EXPECT_EQ(end.connection, reinterpret_cast<stm_connection_t>(0x77));
  EXPECT_EQ(a.event().kind, 0U);
}

TEST_F(TwoSessions, ReportsThatAreClosedLetGoOfQueuesAndPool) {
  const auto pool = std::make_shared<Pool>(a.domain, 8);
  a.reports.close();
  ASSERT_FALSE(a.queue->used());
  auto outlets = a.outlets();
  outlets.pool = pool;
  outlets.context = 9;
  ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  EXPECT_EQ(pool->users, 1U);
  EXPECT_TRUE(a.queue->used());
  a.reports.close();
  EXPECT_EQ(pool->users, 0U);
  EXPECT_FALSE(a.queue->used());
  EXPECT_TRUE(a.queue->reserve(kPlaces)) << "a place is still reserved";
  EXPECT_EQ(a.reports.context(), 9U) << "the program may still ask for it";
}

}  // namespace
}  // namespace stp::managed
