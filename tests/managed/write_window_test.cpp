// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/write_window.h"

#include <gtest/gtest.h>

namespace stp::managed {
namespace {

// protocol: 9.32
TEST(WriteWindow, NoWriteBeginsWhile64OthersHaveBegunSinceTheOldestThatIsNotConfirmed) {
  WriteWindow window;
  const auto oldest = window.begin();
  for (int i = 1; i < 64; ++i) {
    ASSERT_TRUE(window.may_begin()) << i;
    const auto write = window.begin();
    if (i % 3 != 0) window.complete(write);
  }
  EXPECT_FALSE(window.may_begin());
  window.complete(oldest + 3);
  EXPECT_FALSE(window.may_begin()) << "the oldest one is still under way";
  window.complete(oldest);
  EXPECT_TRUE(window.may_begin());
}

}  // namespace
}  // namespace stp::managed
