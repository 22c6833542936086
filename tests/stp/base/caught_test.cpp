// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/caught.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stp {
namespace {

TEST(Caught, people_are_told_what_to_raise_where_no_memory_is_left) {
  EXPECT_STREQ(what_of(std::bad_alloc()), kNoMemoryLeft);
  EXPECT_STREQ(what_of(std::runtime_error("another")), "another");
}

}  // namespace
}  // namespace stp
