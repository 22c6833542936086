// SPDX-License-Identifier: BSD-3-Clause
// How much is under way between stp-send and stp-recv: a few messages, and on long paths as many
// more as they carry, within a bound of memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "libst/os/memory_limit.h"

namespace stp::files {

using Duration = std::chrono::steady_clock::duration;
using TimePoint = std::chrono::steady_clock::time_point;

// Memory for what is under way beyond the first messages of each connection. Any thread.
class Reserve {
 public:
  explicit Reserve(std::size_t bytes = usual()) : left_(bytes) {}
  static std::size_t usual() { return part_of(os::memory_to_be_had()); }
  // 256 MiB, but no more than a sixteenth of the memory that this process may have.
  static std::size_t part_of(std::uint64_t memory) {
    constexpr std::uint64_t kMost = std::uint64_t{256} << 20, kPart = 16;
    return static_cast<std::size_t>(std::min(kMost, memory / kPart));
  }

  // False: that is more than half of what is left, of which something stays for whoever comes
  // later.
  [[nodiscard]] bool take(std::size_t bytes) {
    for (auto left = left_.load(); bytes <= left / 2;)
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    return false;
  }
  void give_back(std::size_t bytes) { left_ += bytes; }

 private:
  std::atomic<std::size_t> left_;
};

// What a connection has of it.
class Share {
 public:
  // nullptr: it gets nothing.
  explicit Share(Reserve* reserve) : reserve_(reserve) {}
  ~Share() { give_back(taken_); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  [[nodiscard]] bool take(std::size_t bytes) {
    const auto has = reserve_ != nullptr && reserve_->take(bytes);
    if (has) taken_ += bytes;
    return has;
  }
  void give_back(std::size_t bytes) {
    taken_ -= bytes;
    if (reserve_ != nullptr) reserve_->give_back(bytes);
  }

 private:
  Reserve* const reserve_;
  std::size_t taken_ = 0;
};

// Whether a connection may have more under way than it begins with.
struct Growth {
  Reserve* reserve = nullptr;  // must outlive it; nullptr: it may not
  std::function<TimePoint()> now = std::chrono::steady_clock::now;
};

// The path of a connection, by how long messages take until they have arrived.
class Path {
 public:
  // Where messages arrive sooner, what is under way at first fills each path.
  static constexpr Duration kLong = std::chrono::milliseconds(2);

  // Each message takes a round trip at least.
  void took(Duration time) { round_trip_ = std::min(round_trip_, time); }
  [[nodiscard]] Duration round_trip() const { return round_trip_; }
  [[nodiscard]] bool is_long() const {
    return round_trip_ >= kLong && round_trip_ != Duration::max();
  }
  // Nothing has waited long for a message that took that time: neither the path nor the receiver.
  // One of content takes two round trips (the receiver grants it first), and one more at most while
  // a receiver spreads what it grants.
  [[nodiscard]] bool has_room(Duration took) const { return is_long() && took < 4 * round_trip_; }

 private:
  Duration round_trip_ = Duration::max();
};

// What comes to a receiver in a round trip.
class Inflow {
 public:
  // Bytes have come. True: in the last round trip it was at least half of what the receiver has
  // room for, so that this may be why it was no more.
  [[nodiscard]] bool fills(std::size_t room, std::size_t bytes, TimePoint now, const Path& path) {
    const auto time = now - since_;
    if (!path.is_long()) return false;
    bytes_ += bytes;
    if (time < path.round_trip()) return false;
    since_ = now;
    const auto in_a_round_trip = static_cast<double>(std::exchange(bytes_, 0)) *
                                 static_cast<double>(path.round_trip().count()) /
                                 static_cast<double>(time.count());
    return in_a_round_trip >= static_cast<double>(room) / 2;
  }

 private:
  TimePoint since_{};
  std::size_t bytes_ = 0;
};

}  // namespace stp::files
