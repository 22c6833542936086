// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/eal.h"

#include <gtest/gtest.h>
#include <rte_malloc.h>

#include <cstdlib>

#include "dpdk_port/link/start_thread.h"
#include "tests/no_threads.h"

namespace stp::port {
namespace {

constexpr unsigned kMegabytes = 64;

// The exit status: 0 if EAL has not begun where there was no thread, and begins when there is one.
int begin_after_a_missing_thread() {
  std::string error;
  try {
    const test::NoThreads now;
    start_eal("", kMegabytes, error);
    return 2;
  } catch (const NoThread&) {
  }
  if (!start_eal("", kMegabytes, error)) return 3;
  return rte_malloc(nullptr, 1, 0) != nullptr ? 0 : 4;
}

// In a process of its own, because EAL begins once in each.
TEST(Eal, BeginsWhenThereIsAThreadAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(begin_after_a_missing_thread()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stp::port
