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
  // private: they are lent no more. They are as before where that cannot be done.
  SetAside(Span pages, int protection, std::shared_ptr<const service::SharedMemory> memory,
           std::uint64_t offset);
  SetAside(SetAside&&) noexcept = default;
  SetAside& operator=(SetAside&&) = delete;
  ~SetAside() = default;
  // In the parent. The child just forgets it.
  void put_back();

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* at) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  static Mapping allocate(std::size_t size);
  bool replace(Mapping made);
  void merge() const;

  Span pages_;
  int protection_;
  std::shared_ptr<const service::SharedMemory> memory_;
  std::uint64_t offset_;
  Mapping before_;  // what they held when they became private
};

}  // namespace stp::client
