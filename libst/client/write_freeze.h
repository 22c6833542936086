// SPDX-License-Identifier: BSD-3-Clause
// Holds back who writes to some pages, as long as it lives, so that they can be copied and replaced
// in between: a thread that writes to them sleeps in its fault (userfaultfd), and afterwards finds
// what is mapped there then. Reading goes on. Signals wait, too, for a handler may write.
//
// The caller's own stack and errno are not on these pages, and meanwhile it writes to no others
// that could be: it makes system calls.
#pragma once

#include <signal.h>

#include "stp/types.h"

namespace stp::client {

class WriteFreeze {
 public:
  // Whole pages, which are there.
  explicit WriteFreeze(MutableBytes pages);
  ~WriteFreeze();
  WriteFreeze(const WriteFreeze&) = delete;
  WriteFreeze& operator=(const WriteFreeze&) = delete;

  // False: this system or this kind of memory (a file's private pages) does not let writers be held
  // back.
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  const MutableBytes pages_;
  sigset_t signals_;
  bool holds_ = false;
};

// The calling thread writes to those pages by running: its stack, its errno.
bool holds_this_thread(MutableBytes pages);

}  // namespace stp::client
