// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/wait.h"

#include <gtest/gtest.h>

#include <memory>

namespace stp::client {
namespace {

class PageEventsTest : public testing::Test {
 protected:
  PageEventsTest() : memory(new ipc::ClientPage{}), page(*memory), events(page) {}

  const std::unique_ptr<ipc::ClientPage> memory;
  ipc::ClientPage& page;
  PageEvents events;
};

TEST_F(PageEventsTest, OneThreadThatIsWokenWakesTheOthersOnce) {
  page.events = 7;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(events.begin_sleep(), 7U);
  page.events = 8;
  EXPECT_TRUE(events.passes_on());
  events.end_sleep();
  EXPECT_FALSE(events.passes_on()) << "the others wake nobody again";
  page.events = 9;
  EXPECT_TRUE(events.passes_on());
}

TEST_F(PageEventsTest, AThreadAloneWakesNobody) {
  events.begin_sleep();
  page.events = 1;
  EXPECT_FALSE(events.passes_on());
}

}  // namespace
}  // namespace stp::client
