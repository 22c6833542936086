// SPDX-License-Identifier: BSD-3-Clause
// A program that can start no threads for a while.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace stp::test {

// No thread begins while this exists: none has room for such a stack.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&saved_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&saved_), 0);
    pthread_attr_destroy(&saved_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t saved_;
};

}  // namespace stp::test
