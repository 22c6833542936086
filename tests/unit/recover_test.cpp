// SPDX-License-Identifier: BSD-3-Clause
// Blocks that stay away are asked for again (section 10).
#include "tests/unit/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Recover : public Writing {
 protected:
  void SetUp() override { start({.recover = true}); }
};

// protocol: 9.5, 10.3
TEST_F(Recover, the_missing_tail_is_asked_for_by_a_repeated_cts) {
  auto const permission = grant(20'000);
  wire = [this](const Frame& f, bool) {
    auto const h = parsed(f).header;
    return h.op() == Op::kData && h.param == 2 ? 0U : 1U;
  };
  put(a, ca, data(permission, 20'000));
  settle();
  EXPECT_FALSE(get(ca));
  pass(100 * kMillisecond);
  auto const again = get(ca);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.op(), Op::kClearToSend);
  EXPECT_EQ(again->header.sync, 2U * 4096) << "F_Offset: what came after it was placed";
  EXPECT_EQ(again->header.bufx, kTargetBufx);
  EXPECT_GE(b.count(Counter::kCtsRepeated), 1U);
}

// protocol: 10.3
TEST_F(Recover, intervals_grow_and_nothing_is_asked_once_the_block_is_complete) {
  auto const permission = grant(20'000);
  pass(3 * kSecond);
  std::size_t asked = 0;
  while (get(ca)) ++asked;
  EXPECT_GE(asked, 4U);
  EXPECT_LE(asked, 12U);
  put(a, ca, data(permission, 20'000));
  pass(5 * kSecond);
  EXPECT_FALSE(get(ca));
  EXPECT_TRUE(arrived(20'000));
}

}  // namespace
}  // namespace stp::test
