// SPDX-License-Identifier: BSD-3-Clause
// Pages that are shared with stpd and hold more than what is lent: during a fork the process has
// them to itself, so that the child gets a copy as of that moment, as of any private page. Then
// what was written meanwhile goes to the shared page, and that is back in its place.
#pragma once

#include <memory>

#include "libst/client/lent_ranges.h"
#include "libst/service/shared_memory.h"

namespace stp::client {

class SetAside {
 public:
  // Whole pages at `pages`; `memory` is mapped there from `offset` on. Without `memory` they stay
  // private: they are lent no more. Where that cannot be done they are left out of the fork.
  SetAside(Span pages, int protection, std::shared_ptr<const service::SharedMemory> memory,
           std::uint64_t offset);
  SetAside(SetAside&&) noexcept = default;
  SetAside& operator=(SetAside&&) = delete;
  ~SetAside() = default;
  // In the parent. The child just forgets it. False: the system refuses, and they stay private.
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
  Mapping before_;  // what they held when they became private
  bool left_out_ = false;
};

// The pages are those of `memory` from here on. Not by ::mmap(), which a thread sanitizer takes for
// the caller's write to all of them: others' bytes stay as they are. 0, or errno.
int map_over(MutableBytes pages, int protection, const service::SharedMemory& memory,
             std::uint64_t offset);

}  // namespace stp::client
