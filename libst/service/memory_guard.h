// SPDX-License-Identifier: BSD-3-Clause
// Programs' memory in the daemon costs it addresses and nothing else. A page of it that is missing,
// because nobody has made it or because its owner has taken it away again by a hole, is not made
// on the daemon's account: asking for it fails, and the thread that touches it all the same finds
// a page of zeros of the daemon's own in its place, goes on, and the program is told of.
//
// By userfaultfd(2) with UFFD_FEATURE_SIGBUS, and a handler of SIGBUS. Where the kernel has or
// permits none, a missing page is made as usual; the handler still keeps a bad page (a swap device
// that cannot be read, a broken memory chip) from ending the daemon.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>

#include "libst/os/unique_fd.h"
#include "stp/types.h"

namespace stp::service {

// Set when memory of whoever has this was found torn.
using Torn = std::atomic<bool>;

// One of the process; never destroyed.
class MemoryGuard {
 public:
  static MemoryGuard& instance();

  // Missing pages are told, and not made.
  [[nodiscard]] bool watches() const { return watcher_.get() >= 0; }
  // Has missing pages of it told. -EPERM: not of memory that this process could never write.
  int watch(MutableBytes mapped) const;
  // Mends `mapped`, whole pages, until forget(). 0 or a negative errno.
  int guard(MutableBytes mapped, std::shared_ptr<Torn> torn);
  void forget(MutableBytes mapped);
  // How often memory was found torn, of anybody.
  static std::uint64_t tears() { return tears_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMost = 1 << 17;  // more than a process has mappings
  // In the order of their addresses. Read by the handler, which takes no lock: it looks again where
  // `changes_` tells that an entry moved meanwhile.
  struct Entry {
    std::atomic<std::uintptr_t> begin, end;
    std::atomic<Torn*> torn;
  };

  MemoryGuard();
  static void on_bus_error(int signal, siginfo_t* info, void* context);
  bool mend(std::uintptr_t at);
  [[nodiscard]] bool look_up(std::uintptr_t at, std::uintptr_t& begin, std::uintptr_t& end,
                             Torn*& torn) const;
  [[nodiscard]] std::size_t first_not_below(std::uintptr_t begin) const;
  void move(std::size_t to, std::size_t from);

  UniqueFd watcher_;
  std::mutex mutex_;  // of who changes entries
  Entry* entries_ = nullptr;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> changes_{0};  // odd: one is under way
  static inline std::atomic<std::uint64_t> tears_{0};
};

// Memory that is guarded for as long as this lives.
class Guarded {
 public:
  Guarded() = default;
  ~Guarded() { reset(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  int begin(MutableBytes mapped, std::shared_ptr<Torn> torn);
  void reset();

 private:
  MutableBytes mapped_;
  std::shared_ptr<Torn> torn_;
};

}  // namespace stp::service
