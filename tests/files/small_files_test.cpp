// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/small_files.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>

namespace stp::files {
namespace {

TEST(Helper, works_at_the_same_time) {
  Helper helper;
  for (int i = 0; i < 100; ++i) {
    std::latch both(2);  // each waits for the other
    std::atomic<int> calls{0};
    helper.share([&] {
      ++calls;
      both.arrive_and_wait();
    });
    EXPECT_EQ(calls, 2);
  }
}

TEST(Helper, has_stopped_when_share_returns) {
  Helper helper;
  for (int i = 0; i < 1'000; ++i) {
    std::array<std::atomic<int>, 64> pieces{};
    std::atomic<std::size_t> next{0};
    std::atomic<int> under_way{0};
    helper.share([&] {
      ++under_way;
      for (auto at = next++; at < pieces.size(); at = next++) ++pieces[at];
      --under_way;
    });
    EXPECT_EQ(under_way, 0);
    for (const auto& piece : pieces) EXPECT_EQ(piece, 1);
  }
}

TEST(Helper, that_was_never_asked_ends) {
  const Helper helper;
}

}  // namespace
}  // namespace stp::files
