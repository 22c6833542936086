// SPDX-License-Identifier: BSD-3-Clause
// Blocks writers to some pages while it exists, so that the pages can be copied and replaced: a
// thread that writes sleeps in its page fault (userfaultfd), and afterwards writes to what is
// mapped there then. Reading continues. Signals to the calling thread are blocked, because a
// handler may write.
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

  // False: the kernel cannot block writers at all, or not to this kind of memory (private pages of
  // a file).
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  const MutableBytes pages_;
  sigset_t signals_;
  bool holds_ = false;
};

// Returns whether the calling thread's stack or its errno may be on these pages, so that it writes
// to them merely by running.
bool holds_this_thread(MutableBytes pages);

}  // namespace stp::client
