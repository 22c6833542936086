// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace stp::test {

// For its lifetime, this process may open no descriptor whose number is `limit` or more.
class FewFiles {
 public:
  explicit FewFiles(rlim_t limit) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
    const rlimit few{limit, usual_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit usual_{};
};

}  // namespace stp::test
