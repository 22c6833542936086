// SPDX-License-Identifier: BSD-3-Clause
// Memory of the program that operations under way read or write. Those on the same bytes share one
// registration: it stays theirs until the last one is done, and through a stpd each costs
// milliseconds.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
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
  int take(const Bytes& bytes, Shared*& out) {
    const auto place = in_use_.try_emplace(bytes).first;
    auto& found = place->second;
    if (found.users_ == 0) {
      const auto error =
          stm_memory_register(domain_, bytes.data, bytes.length, bytes.access, &found.memory_);
      if (error != 0) {
        in_use_.erase(place);
        return error;
      }
      found.of_ = this;
      found.bytes_ = bytes;
    }
    ++found.users_;
    out = &found;
    return 0;
  }
  [[nodiscard]] std::size_t size() const { return in_use_.size(); }
  // How many have ended.
  [[nodiscard]] std::uint64_t released() const { return released_; }

 private:
  stm_domain_t domain_ = nullptr;
  std::map<Bytes, Shared> in_use_;
  std::uint64_t released_ = 0;
};

inline void Registrations::Shared::give_back() {
  if (--users_ != 0) return;
  stm_memory_release(memory_);
  ++of_->released_;
  of_->in_use_.erase(Bytes(bytes_));  // the last access to this
}

}  // namespace stp::fi
