// SPDX-License-Identifier: BSD-3-Clause
// Memory whose pages are dear to take away: the kernel goes through all places where they are
// mapped.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstddef>
#include <vector>

namespace stp::hostile {

// How fallocate() takes pages away.
inline constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

// Maps the file as often as a process may, or nearly.
class ManyMappings {
 public:
  ManyMappings(int fd, std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t kMappings = 10'000;
    for (std::size_t i = 0; i < kMappings; ++i) {
      auto* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
      if (at != MAP_FAILED) mapped_.push_back(at);
    }
  }
  ~ManyMappings() {
    for (auto* const at : mapped_) ::munmap(at, bytes_);
  }
  ManyMappings(const ManyMappings&) = delete;
  ManyMappings& operator=(const ManyMappings&) = delete;

 private:
  const std::size_t bytes_;
  std::vector<void*> mapped_;
};

}  // namespace stp::hostile
