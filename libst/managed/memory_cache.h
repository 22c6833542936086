// SPDX-License-Identifier: BSD-3-Clause
// Registrations that the program has released, for programs and layers that register the same
// memory again and again. They stay bound, so that the next registration of the same bytes with the
// same access costs no request. No peer reaches them. What is mapped at their address is looked at
// before one is used again: if it is not what was registered, the registration is made anew.
//
// They count in the quotas and budgets of this program, and give way when it needs those. The
// oldest one gives way when there are too many. All under the control mutex of the domain.
#pragma once

#include <list>
#include <memory>

#include "libst/managed/memory.h"

namespace stp::managed {

class MemoryCache {
 public:
  // The most registrations and bytes that are kept.
  static constexpr std::size_t kMost = 64, kMostBytes = std::size_t{64} << 20;

  // Off if the environment says so, or if the kernel cannot tell what is mapped at an address.
  MemoryCache();
  explicit MemoryCache(bool on) : on_(on) {}

  // Takes a registration that nothing uses, or unbinds it.
  void keep(std::shared_ptr<Memory> memory);
  // Binds `memory` as a registration that was kept. False: there is none.
  bool restore(Memory& memory);
  // Unbinds all. False: there was none.
  bool clear();
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] std::size_t size() const { return kept_.size(); }

 private:
  using Kept = std::list<std::shared_ptr<Memory>>;  // the one released last is the first
  std::shared_ptr<Memory> remove(Kept::iterator at);

  const bool on_;
  Kept kept_;
  std::size_t bytes_ = 0;
};

}  // namespace stp::managed
