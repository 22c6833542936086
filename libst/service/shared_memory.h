// SPDX-License-Identifier: BSD-3-Clause
// Memory that can be handed to another process: a memfd, sealed so that it never shrinks.
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
  // Zeroed, page-aligned, sealed against resizing. nullptr: errno tells.
  static std::shared_ptr<SharedMemory> create(const char* name, std::size_t size);
  // Maps what another process gave; takes `fd` over whatever happens. nullptr (errno EINVAL) when
  // it is not tmpfs memory sealed against shrinking, or is smaller than asked.
  static std::shared_ptr<SharedMemory> adopt(int fd, std::size_t offset, std::size_t size);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Closes the descriptor; the memory stays. For memory that will not be handed on any more:
  // descriptors are scarcer than mappings.
  void forget_fd() {
    fd_.reset();
    file_.reset();
  }
  // What the descriptor and the mapping were reserved from: given back with each of them.
  void charge(Reservation file, Reservation mapping) {
    file_ = std::move(file);
    mapping_ = std::move(mapping);
  }

 private:
  static std::shared_ptr<SharedMemory> map(UniqueFd fd, std::size_t offset, std::size_t size);
  SharedMemory(UniqueFd fd, std::byte* data, std::size_t size)
      : fd_(std::move(fd)), data_(data), size_(size) {}
  Reservation file_, mapping_;  // go last
  UniqueFd fd_;
  std::byte* data_;
  std::size_t size_;
};

// Whether `size` bytes at `offset` of `fd` can be mapped without a fault that kills: memory (not a
// file on a disk, nor huge pages, which can run out) that its owner can no longer shrink. `offset`
// is a multiple of the page size. 0 or -EINVAL.
int check_shareable(int fd, std::uint64_t offset, std::uint64_t size);
[[nodiscard]] std::size_t page_size();

}  // namespace stp::service
