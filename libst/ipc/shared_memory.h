// SPDX-License-Identifier: BSD-3-Clause
// Memory that can be passed to another process: a memfd, sealed against shrinking. The object owns
// the mapping and, until forget_fd(), the descriptor.
//
// Whoever holds a memfd can also punch holes into it: a thread that touches such a page sleeps in
// the kernel until the punch ends, which takes seconds if the page is mapped very often. So a
// service touches memory that it has offered to another process only after keep_pages().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "libst/os/unique_fd.h"
#include "stp/types.h"

namespace stp::ipc {

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
  // Has the kernel allocate all pages in one call, whatever they hold: each page that is touched by
  // itself costs a page fault. Returns 0 or a negative errno.
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

}  // namespace stp::ipc
