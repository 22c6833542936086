// SPDX-License-Identifier: BSD-3-Clause
// The requests or grants of one side. Each kind makes room only for its own, so that regions stay
// known, however many Transfers there are meanwhile.
#pragma once

#include <array>
#include <cstdint>

#include "tools/replay/check/recent.h"

namespace stp::replay {

enum class Kind { kTransfer, kRegion, kRing };

template <typename Value>
class ByKind {
 public:
  using Newest = Recent<std::uint32_t, Value, 512>;

  Value* find(std::uint32_t id) {
    for (auto& kept : kinds_)
      if (auto* const value = kept.find(id)) return value;
    return nullptr;
  }
  // As find(). The entry counts as new then.
  Value* find_again(std::uint32_t id) {
    for (auto& kept : kinds_)
      if (auto* const value = kept.find_again(id)) return value;
    return nullptr;
  }
  Value& put(std::uint32_t id, Value value) {
    for (auto& kept : kinds_) kept.erase(id);
    return kinds_[static_cast<std::size_t>(value.kind())].put(id, std::move(value));
  }
  [[nodiscard]] bool forgot() const {
    return kinds_[0].forgot() || kinds_[1].forgot() || kinds_[2].forgot();
  }
  Newest& transfers() { return kinds_[static_cast<std::size_t>(Kind::kTransfer)]; }

 private:
  std::array<Newest, 3> kinds_;
};

}  // namespace stp::replay
