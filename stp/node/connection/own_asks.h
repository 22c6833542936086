// SPDX-License-Identifier: BSD-3-Clause
// The Syncs of a Node's own last few questions about Slots. Answers to them, however often they
// arrive, are for the Node and not for its user (section 6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace stp {

// protocol: 6.10
class OwnAsks {
 public:
  void add(std::uint32_t sync) { syncs_[count_++ % kKept] = sync; }
  // The Sync of the last question. Requires one.
  [[nodiscard]] std::uint32_t newest() const { return syncs_[(count_ - 1) % kKept]; }
  [[nodiscard]] bool contains(std::uint32_t sync) const {
    const auto kept = static_cast<std::ptrdiff_t>(std::min(count_, kKept));
    const auto end = syncs_.begin() + kept;
    return std::find(syncs_.begin(), end, sync) != end;
  }

 private:
  static constexpr std::size_t kKept = 4;
  std::array<std::uint32_t, kKept> syncs_{};
  std::size_t count_ = 0;
};

}  // namespace stp
