// SPDX-License-Identifier: BSD-3-Clause
// Replaces pages of the program: holds writers back, and sets pages aside during a fork.
#pragma once

#include <signal.h>

#include <memory>
#include <vector>

#include "libst/client/lent_ranges.h"
#include "libst/ipc/shared_memory.h"
#include "stp/types.h"

namespace stp::client {

// Blocks writers to some pages while it exists, so that the pages can be copied and replaced: a
// thread that writes sleeps in its page fault (userfaultfd), and afterwards writes to what is
// mapped there then. Reading continues. Signals to the calling thread are blocked, because a
// handler may write.
//
// The caller's stack and errno must not be on these pages. Meanwhile the caller only makes system
// calls and writes to no page that could be among them.
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

// Pages that are shared with stpd and hold more than lent bytes. During a fork they are private to
// the process, so that the child gets a copy of them, as of any private page. Afterwards the parent
// writes what has changed meanwhile to the shared pages, and maps these again.
class SetAside {
 public:
  // What is mapped at the pages: a memfd, by its inode, from `offset` on.
  struct Place {
    std::uint64_t inode = 0, offset = 0;
  };
  // Makes the pages private. `pages`: whole pages, where `memory` is mapped at `place`. `memory`
  // nullptr: the pages are no longer lent, and stay private. If this fails, the pages are excluded
  // from the fork. Pages that another thread has unmapped meanwhile are left alone.
  SetAside(Span pages, int protection, std::shared_ptr<const ipc::SharedMemory> memory,
           Place place);
  SetAside(SetAside&&) noexcept = default;
  SetAside& operator=(SetAside&&) = delete;
  ~SetAside() = default;
  // Call in the parent after the fork; the child does nothing. False: the kernel refuses, and the
  // pages stay private.
  [[nodiscard]] bool put_back() const;
  // Another thread has unmapped some of the pages, or mapped others there: nothing was done.
  [[nodiscard]] bool has_gone() const { return has_gone_; }
  // What is left of the pages at the place. Allocates memory.
  static std::vector<Span> left_of(Span pages, const Place& place);

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* at) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  static Mapping allocate(std::size_t size);
  [[nodiscard]] bool is_there() const;
  bool replace();
  bool copy_and_replace(bool wants_freeze);  // false as well: a freeze is wanted, and does not hold
  bool map_again() const;
  bool make_private(Mapping made);

  Span pages_;
  int protection_;
  std::shared_ptr<const ipc::SharedMemory> memory_;
  Place place_;
  Mapping before_;  // their contents when they became private
  bool left_out_ = false, has_gone_ = false;
};

// Maps `memory` over `pages`: one more view of its own mapping, because stpd has sealed it against
// new ones. Returns 0 or errno. Makes the system call itself: ThreadSanitizer takes ::mremap() for
// a write of the caller to all the pages, although bytes of others keep their values.
int map_over(MutableBytes pages, int protection, const ipc::SharedMemory& memory,
             std::uint64_t offset);

}  // namespace stp::client
