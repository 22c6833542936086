// SPDX-License-Identifier: BSD-3-Clause
// Blocks writers to some pages while it exists, so that the pages can be copied and replaced: a
// thread that writes sleeps in its page fault (userfaultfd), and then finds what is mapped there
// afterwards. Reading continues. Signals are blocked as well, because a handler may write.
//
// The caller's stack and errno must not be on these pages. Meanwhile the caller only makes system
// calls and writes to no page that could be among them.
#pragma once

#include <signal.h>

#include "stp/types.h"

namespace stp::client {

class WriteFreeze {
 public:
  // `pages`: whole pages, all present.
  explicit WriteFreeze(MutableBytes pages);
  ~WriteFreeze();
  WriteFreeze(const WriteFreeze&) = delete;
  WriteFreeze& operator=(const WriteFreeze&) = delete;

  // False: this system or this kind of memory (private pages of a file) does not support blocking
  // writers.
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  const MutableBytes pages_;
  sigset_t signals_;
  bool holds_ = false;
};

// Whether the calling thread writes to those pages merely by running: to its stack or errno.
bool holds_this_thread(MutableBytes pages);

}  // namespace stp::client
