// SPDX-License-Identifier: BSD-3-Clause
// Pages that are shared with stpd and hold more than the lent bytes. During a fork they become
// private to the process, so that the child gets a copy of them, as of any private page. Afterwards
// the parent writes what has changed meanwhile to the shared pages and maps these again.
#pragma once

#include <memory>

#include "libst/client/lent_ranges.h"
#include "libst/service/shared_memory.h"

namespace stp::client {

class SetAside {
 public:
  // `pages`: whole pages, where `memory` is mapped from `offset` on. Without `memory` they stay
  // private: they are no longer lent. If that fails, they are excluded from the fork.
  SetAside(Span pages, int protection, std::shared_ptr<const service::SharedMemory> memory,
           std::uint64_t offset);
  SetAside(SetAside&&) noexcept = default;
  SetAside& operator=(SetAside&&) = delete;
  ~SetAside() = default;
  // For the parent; the child just drops the object. False: the system refuses, and the pages stay
  // private.
  [[nodiscard]] bool put_back() const;

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* at) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  static Mapping allocate(std::size_t size);
  bool replace();
  bool make_private(Mapping made);

  Span pages_;
  int protection_;
  std::shared_ptr<const service::SharedMemory> memory_;
  std::uint64_t offset_;
  Mapping before_;  // their contents when they became private
  bool left_out_ = false;
};

// Maps `memory` over `pages`. Does not use ::mmap(), which a thread sanitizer takes for a write of
// the caller to all of them, although bytes of others keep their values. Returns 0 or errno.
int map_over(MutableBytes pages, int protection, const service::SharedMemory& memory,
             std::uint64_t offset);

}  // namespace stp::client
