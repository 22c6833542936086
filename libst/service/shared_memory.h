// SPDX-License-Identifier: BSD-3-Clause
// Memory that can be passed to another process: a memfd, sealed against shrinking. The object owns
// the mapping and, until forget_fd(), the descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "libst/os/unique_fd.h"
#include "libst/service/budget.h"
#include "stp/types.h"

namespace stp::service {

class SharedMemory {
 public:
  // Zeroed, page-aligned, sealed against resizing. nullptr: see errno.
  static std::shared_ptr<SharedMemory> create(const char* name, std::size_t size);
  // Maps memory that another process has sent; always takes ownership of `fd`. nullptr (errno
  // EINVAL) if it is not tmpfs memory sealed against shrinking, or is smaller than asked.
  static std::shared_ptr<SharedMemory> adopt(int fd, std::size_t offset, std::size_t size);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Closes the descriptor and keeps the memory. For memory that will not be passed on again:
  // descriptors are scarcer than mappings.
  void forget_fd() {
    fd_.reset();
    file_.reset();
  }
  // Attaches reservations, which return to their budgets when the descriptor and the mapping go.
  void charge(Reservation file, Reservation mapping) {
    file_ = std::move(file);
    mapping_ = std::move(mapping);
  }

 private:
  static std::shared_ptr<SharedMemory> map(UniqueFd fd, std::size_t offset, std::size_t size);
  SharedMemory(UniqueFd fd, std::byte* data, std::size_t size)
      : fd_(std::move(fd)), data_(data), size_(size) {}
  Reservation file_, mapping_;  // destroyed last
  UniqueFd fd_;
  std::byte* data_;
  std::size_t size_;
};

// Checks that `size` bytes at `offset` of `fd` can be mapped without the risk of a fatal fault:
// tmpfs memory (not a file on a disk, nor huge pages, which can run out) that its owner can no
// longer shrink. `offset` is a multiple of the page size. Returns 0 or -EINVAL.
int check_shareable(int fd, std::uint64_t offset, std::uint64_t size);
[[nodiscard]] std::size_t page_size();

}  // namespace stp::service
