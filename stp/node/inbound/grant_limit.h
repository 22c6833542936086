// SPDX-License-Identifier: BSD-3-Clause
// How much may be granted over all connections of a Node (docs/protocol.md, 10.8 and 10.24).
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/types.h"

namespace stp {

// A Block comes soon if its first STU is here so shortly after its CTS: nothing that was granted
// before it waits for longer.
// protocol: 10.24
inline constexpr Time kSoon = 500 * kMicrosecond;

// The limit of a Node. It grows while Blocks come soon, and shrinks while they do not, so that what
// it lets wait anywhere is gone in about that time.
// protocol: 10.24
class GrantLimit {
 public:
  static constexpr std::uint64_t kMostBeyond = std::uint64_t{1} << 26;

  GrantLimit() = default;  // none
  // `least` 0: none.
  GrantLimit(std::uint64_t least, std::uint64_t most)
      : least_(least),
        bytes_(least),
        most_(least == 0 ? 0 : std::clamp(most, least, least + kMostBeyond)),
        ceiling_(most_) {}

  [[nodiscard]] bool is_none() const { return least_ == 0; }
  [[nodiscard]] bool is_fixed() const { return most_ == least_; }
  [[nodiscard]] std::uint64_t least() const { return least_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // What it has grown by.
  [[nodiscard]] std::uint64_t beyond() const { return bytes_ - least_; }
  [[nodiscard]] std::uint64_t most() const { return most_; }
  // A Block of `charge` bytes has come soon while its connection had `granted`. True: the limit has
  // grown. It does not for many connections with little each, which may fill a queue at once.
  bool came_soon(std::uint64_t charge, std::uint64_t granted) {
    if (is_fixed() || kMany * granted < bytes_) return false;
    const auto before = bytes_;
    ceiling_ += std::min(charge / kSlowSteps, most_ - ceiling_);
    bytes_ += std::min(charge / kSteps, ceiling_ - bytes_);
    return bytes_ != before;
  }
  void came_late(std::uint64_t charge) { bytes_ -= std::min(charge / kSteps, bytes_ - least_); }
  // Whether a connection that has `granted` is not one of many.
  [[nodiscard]] bool is_large(std::uint64_t granted) const { return kMany * granted >= least_; }
  // Something of a connection that may use more than the least is lost. From now on the limit grows
  // slowly.
  void lost() { ceiling_ = bytes_ -= (bytes_ - least_) / 2; }

 private:
  static constexpr std::uint64_t kMany = 4;
  // It grows by no more than this part of it in a round trip: a loss is seen one later.
  static constexpr std::uint64_t kSteps = 8, kSlowSteps = 2'048;
  std::uint64_t least_ = 0, bytes_ = 0, most_ = 0;
  std::uint64_t ceiling_ = 0;
};

// What one connection has shown: the bytes that it may have on their way while more than the least
// limit is granted. At most about twice what was on its way and came soon.
// protocol: 10.24
class Promptness {
 public:
  [[nodiscard]] std::uint64_t bytes() const {
    return units_ > 0 ? static_cast<std::uint64_t>(units_) << kUnitLog2 : 0;
  }
  // A Block of `bytes` has come soon while `on_the_way` were, it included. True: that shows more.
  bool came_soon(std::uint64_t bytes, std::uint64_t on_the_way) {
    const auto before = this->bytes();
    const auto more = units(std::max(bytes >> kUnitLog2, std::uint64_t{1}));
    if (units_ < 0)
      set(std::min(units_ + more, 0));
    else if (2 * on_the_way >= before)
      set(units_ + more);
    return this->bytes() != before;
  }
  void came_late(std::uint64_t bytes) {
    if (units_ > 0) set(std::max(units_ - units((bytes >> kUnitLog2) + 1), 0));
  }
  // Something is lost: a queue is so short that nothing waits for long.
  void lost() { units_ = -kMost; }

 private:
  static constexpr unsigned kUnitLog2 = 14;
  static constexpr std::int16_t kMost = 32'767;
  static int units(std::uint64_t count) {
    return static_cast<int>(std::min<std::uint64_t>(count, kMost));
  }
  void set(int units) { units_ = static_cast<std::int16_t>(std::min<int>(units, kMost)); }

  std::int16_t units_ = 0;  // less than 0: nothing more is shown by as much
};

// Over all connections of a Node.
struct NodeGrants {
  std::uint64_t charged = 0;
  std::uint64_t silent = 0;  // written off, and thus not in `charged`
  // A part of `charged`: it stands in what the limit has grown by. The rest stands in the least.
  std::uint64_t beyond = 0;
  bool look_again = false;  // a held CTS may go now, whatever `charged` is
  GrantLimit limit{};

  // What is left of the least limit, and of what has grown.
  [[nodiscard]] std::uint64_t room() const {
    return limit.least() - std::min(charged - beyond, limit.least());
  }
  [[nodiscard]] std::uint64_t room_beyond() const {
    return limit.beyond() - std::min(beyond, limit.beyond());
  }
};

}  // namespace stp
