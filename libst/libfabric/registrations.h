// SPDX-License-Identifier: BSD-3-Clause
// Memory of the program that operations under way read or write. Those on the same bytes share one
// registration: it stays theirs until the last one is done, and through a stpd each costs
// milliseconds.
#pragma once

#include <compare>
#include <cstddef>
#include <map>

#include "libst/include/stp/managed.h"

namespace stp::fi {

// Under the link's mutex.
class Registrations {
 public:
  struct Bytes {
    std::byte* data;
    std::size_t length;
    unsigned access;
    auto operator<=>(const Bytes&) const = default;
  };
  // One, with those that use it.
  class Shared {
   public:
    [[nodiscard]] stm_memory_t memory() const { return memory_; }
    // Whoever has taken it does not use it any more.
    void give_back();

   private:
    friend class Registrations;
    Registrations* of_ = nullptr;
    Bytes bytes_{};
    stm_memory_t memory_ = nullptr;
    std::size_t users_ = 0;
  };

  void set_domain(stm_domain_t domain) { domain_ = domain; }
  // 0 or a status.
  int take(const Bytes& bytes, Shared*& out);
  [[nodiscard]] std::size_t size() const { return in_use_.size(); }

 private:
  stm_domain_t domain_ = nullptr;
  std::map<Bytes, Shared> in_use_;
};

}  // namespace stp::fi
