// SPDX-License-Identifier: BSD-3-Clause
// Protects the daemon from missing pages in memory of programs that it has mapped. A page may be
// missing because nobody has touched it, or because its owner has punched a hole. The daemon never
// allocates such a page in the program's memory. If a thread of the daemon touches one, the guard
// maps a private page of zeros in its place, so that the thread continues, and marks the program's
// memory as torn.
//
// The guard uses userfaultfd(2) with UFFD_FEATURE_SIGBUS and a SIGBUS handler. If the kernel has no
// userfaultfd or denies it, the kernel allocates a missing page as usual; the handler still keeps a
// bad page (an unreadable swap device, a broken memory chip) from ending the daemon.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "libst/os/unique_fd.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::host {

// One flag per client; set when its memory was found torn.
using Torn = std::atomic<bool>;

// Ranges of memory, none overlapping, each with the flag of its owner. A signal handler can look up
// an address at any time, even while another thread changes the table.
class GuardedRanges {
 public:
  // Reserves address space for `most` ranges. The kernel allocates its pages when they are first
  // used. Throws std::bad_alloc.
  explicit GuardedRanges(std::size_t most);
  ~GuardedRanges();
  GuardedRanges(const GuardedRanges&) = delete;
  GuardedRanges& operator=(const GuardedRanges&) = delete;

  // `torn` lives until remove(). Returns 0, or -ENOMEM if the table is full.
  int add(MutableBytes range, Torn* torn);
  // Does nothing if no range begins there.
  void remove(MutableBytes range);

  struct Range {
    std::uintptr_t begin = 0, end = 0;
    Torn* torn = nullptr;
  };
  // False: no range holds the address. Async-signal-safe.
  [[nodiscard]] bool find(std::uintptr_t at, Range& out) const;
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  struct Entry {
    std::atomic<std::uintptr_t> begin, end;
    std::atomic<Torn*> torn;
  };
  [[nodiscard]] std::size_t first_not_above(std::uintptr_t at) const;
  void move(std::size_t to, std::size_t from) STP_REQUIRES(mutex_);

  const std::size_t most_;
  Mutex mutex_;  // held to change entries; find() reads them without
  // The highest address first: the kernel mostly maps below what it has mapped before, so a new
  // entry mostly goes to the end.
  Entry* entries_ = nullptr;
  std::atomic<std::size_t> count_{0};
  // Odd: a change is in progress. find() searches again if it has changed meanwhile.
  std::atomic<std::uint64_t> changes_{0};
};

// One per process; never destroyed. Thread-safe.
class MemoryGuard {
 public:
  static MemoryGuard& instance();

  // Returns whether the kernel supports watch().
  [[nodiscard]] bool watches() const { return watcher_.get() >= 0; }
  // Registers memory so that touching its missing pages raises SIGBUS instead of allocating them.
  // Returns 0 or a negative errno; -EPERM: this process may never write to that memory.
  int watch(MutableBytes mapped) const;
  // Repairs faults in `mapped` (whole pages) until forget(). `torn` must live as long. Returns 0,
  // or -ENOMEM if the table is full.
  int guard(MutableBytes mapped, const std::shared_ptr<Torn>& torn);
  void forget(MutableBytes mapped);
  // Counts the faults repaired so far, in the memory of all clients.
  static std::uint64_t tears() { return tears_.load(std::memory_order_relaxed); }
  // How many regions the table has room for, if a process may have `mappings`: each region takes at
  // least one.
  static std::size_t room(std::uint64_t mappings);

 private:
  MemoryGuard();
  static void on_bus_error(int signal, siginfo_t* info, void* context);
  bool mend(std::uintptr_t at);

  os::UniqueFd watcher_;
  GuardedRanges ranges_;  // read by the signal handler without a lock
  static inline std::atomic<std::uint64_t> tears_{0};
};

// Guards a range of memory while it exists.
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

}  // namespace stp::host
