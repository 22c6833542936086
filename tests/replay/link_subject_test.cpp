// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/player.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "tests/temporary_directory.h"

namespace stp::replay::test {
namespace {

using std::chrono::milliseconds;

class LastPlayTest : public ::testing::Test {
 protected:
  void set_time(std::time_t from_now) const {
    const auto when = std::time(nullptr) + from_now;
    const timespec times[2] = {{when, 0}, {when, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  stp::test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/last";
  const LastPlay last{path};
};

// protocol: 5.10
TEST_F(LastPlayTest, a_station_remembers_for_four_seconds) {
  EXPECT_EQ(last.remembered(), milliseconds(0));
  last.note();
  EXPECT_GT(last.remembered(), milliseconds(0));
  EXPECT_LE(last.remembered(), LastPlay::kRemembered);
  set_time(-5);
  EXPECT_EQ(last.remembered(), milliseconds(0));
  last.note();
  EXPECT_GT(last.remembered(), milliseconds(0));
}

TEST_F(LastPlayTest, a_clock_that_was_set_back_makes_nobody_wait) {
  last.note();
  set_time(1'000);
  EXPECT_EQ(last.remembered(), milliseconds(0));
}

TEST_F(LastPlayTest, where_nothing_can_be_kept_nothing_is_known) {
  const LastPlay nowhere("");
  nowhere.note();
  EXPECT_EQ(nowhere.remembered(), milliseconds(0));
  ASSERT_EQ(::symlink("/nowhere/at/all", path.c_str()), 0);
  last.note();
}

}  // namespace
}  // namespace stp::replay::test
