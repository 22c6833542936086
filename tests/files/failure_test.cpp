// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace stp::files {
namespace {

// Only the library's text tells that it was a thread that was not to be had.
TEST(Failure, a_link_that_cannot_be_opened_now_has_the_hint_at_another_one) {
  const std::string text = link_failure(-EAGAIN).what();
  EXPECT_NE(text.find("--link names another one"), std::string::npos) << text;
}

}  // namespace
}  // namespace stp::files
