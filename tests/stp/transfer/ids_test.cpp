// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/ids.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 8.13, 9.1
TEST(Ids, count_up_from_one) {
  Ids ids;
  for (std::uint32_t id = 1; id < 1'000; ++id) ASSERT_EQ(ids.next(), id);
}

}  // namespace
}  // namespace stp::test
