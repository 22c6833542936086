// SPDX-License-Identifier: BSD-3-Clause
// Memory that processes share, and the guard of who touches it against pages that are missing.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "libst/os/unique_fd.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::ipc {

// Memory that can be passed to another process: a memfd, sealed against shrinking. The object owns
// the mapping and, until forget_fd(), the descriptor.
//
// Whoever holds a memfd can also punch holes into it: a thread that touches such a page sleeps in
// the kernel until the punch ends, which takes seconds if the page is mapped very often. So a
// service touches memory that it has offered to another process only after keep_pages().
class SharedMemory {
 public:
  // Zeroed, page-aligned, sealed against resizing, for memory of this process that it lends: who
  // borrows it maps it, then seals it. nullptr: see errno.
  static std::shared_ptr<SharedMemory> lend(const char* name, std::size_t size);
  // The same for memory that is about to be passed on, and kept by keep_pages() later.
  static std::shared_ptr<SharedMemory> offer(const char* name, std::size_t size);
  // The same for memory of this process only. It has no descriptor.
  static std::shared_ptr<SharedMemory> create_own(std::size_t size);
  // Maps memory that another process has sent; always takes ownership of `fd`. Allocates all of its
  // pages, so that the kernel charges them to this process. nullptr (errno EINVAL) if it is not
  // tmpfs memory sealed against shrinking, or is smaller than asked.
  static std::shared_ptr<SharedMemory> adopt(int fd, std::size_t offset, std::size_t size);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Call when the other side has mapped what was offered: from now on nobody can take pages away,
  // and nobody else can map the memory for writing. Waits for whoever takes away pages at present,
  // so call it where that holds up nobody. Returns 0; -EPERM: the other side has seen to it that
  // the memory cannot be sealed; -EFAULT: it has not allocated all of the pages, which it can keep
  // for longer than this side, so it has to pay for them; or another negative errno. On Linux
  // before 5.1 pages can still be taken away.
  [[nodiscard]] int keep_pages() const;
  // Has the kernel allocate all pages in few calls, whatever they hold: each page that is touched
  // by itself costs a page fault. Returns 0 or a negative errno.
  [[nodiscard]] int touch_pages() const;
  // Returns whether the kernel can keep pages.
  static bool can_keep_pages();
  // Ends with the memory, after it is unmapped: for what keeps the kernel from moving its pages.
  void attach(std::shared_ptr<void> pins) { pins_ = std::move(pins); }
  // Closes the descriptor and keeps the memory. For memory that will not be passed on again:
  // descriptors are scarcer than mappings.
  void forget_fd() {
    fd_.reset();
    file_.reset();
  }
  // What the owner has reserved for the descriptor and for the mapping: it ends with each.
  void charge(std::shared_ptr<void> file, std::shared_ptr<void> mapping) {
    file_ = std::move(file);
    mapping_ = std::move(mapping);
  }

 private:
  static std::shared_ptr<SharedMemory> map(os::UniqueFd fd, std::size_t offset, std::size_t size);
  SharedMemory(os::UniqueFd fd, std::byte* data, std::size_t size)
      : fd_(std::move(fd)), data_(data), size_(size) {}
  std::shared_ptr<void> file_, mapping_;  // destroyed last
  os::UniqueFd fd_;
  std::byte* data_;
  std::size_t size_;
  bool offered_ = false;
  std::shared_ptr<void> pins_;
};

// Checks that `size` bytes at `offset` of `fd` can be mapped without the risk of a fatal fault:
// tmpfs memory (not a file on a disk, nor huge pages, which can run out) that its owner can no
// longer shrink. `offset` is a multiple of the page size. Returns 0 or -EINVAL.
int check_shareable(int fd, std::uint64_t offset, std::uint64_t size);
[[nodiscard]] std::size_t page_size();
// F_SEAL_FUTURE_WRITE, which older headers lack: nobody maps the memory for writing any more, and
// nobody takes pages away. Mappings for writing that exist go on.
inline constexpr int kSealFutureWrite = 0x10;

// Protects the daemon from missing pages in memory of programs that it has mapped. A page may be
// missing because nobody has touched it, or because its owner has punched a hole. The daemon never
// allocates such a page in the program's memory. If a thread of the daemon touches one, the guard
// maps a private page of zeros in its place, so that the thread continues, and marks the program's
// memory as torn.
//
// The guard uses userfaultfd(2) with UFFD_FEATURE_SIGBUS and a SIGBUS handler. If the kernel has no
// userfaultfd or denies it, the kernel allocates a missing page as usual; the handler still keeps a
// bad page (an unreadable swap device, a broken memory chip) from ending the daemon.

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

}  // namespace stp::ipc
