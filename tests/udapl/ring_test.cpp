// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ring.h"

#include <gtest/gtest.h>

#include <memory>

namespace stp::test {
namespace {

using udapl::Ring;

TEST(Ring, GivesBackInOrderAcrossItsEndAndWhileItGrows) {
  Ring<int> ring;
  int in = 0, out = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 3; ++i) ring.push_back(in++);
    ASSERT_EQ(ring.front(), out);
    ASSERT_EQ(ring.back(), in - 1);
    for (std::size_t i = 0; i < ring.size(); ++i) ASSERT_EQ(ring[i], out + static_cast<int>(i));
    for (int i = 0; i < (round < 25 ? 2 : 4) && !ring.empty(); ++i, ++out) {
      ASSERT_EQ(ring.front(), out);
      ring.pop_front();
    }
  }
  EXPECT_EQ(in, out);
}

TEST(Ring, KeepsNothingOfWhatIsTakenFromEitherEnd) {
  Ring<std::shared_ptr<int>> ring;
  const auto value = std::make_shared<int>(1);
  for (int i = 0; i < 3; ++i) ring.push_back(value);
  ring.pop_front();
  ring.pop_back();
  EXPECT_EQ(value.use_count(), 2);
  EXPECT_EQ(ring.size(), 1U);
}

}  // namespace
}  // namespace stp::test
