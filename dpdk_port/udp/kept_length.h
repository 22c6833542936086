// SPDX-License-Identifier: BSD-3-Clause
// How much of what has been read stays in a socket (KeptMessages), found out by trying. Where the
// CPUs of sender and receiver share a cache, little is best, which stays in it; where they share
// none, much is, because then the memory that the sender gets has left the receiver's caches. While
// a stream comes without a pause, each length has its turn for a while, and the one at which more
// came a second stays, until the next trial: the host of a virtual machine moves its CPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "stp/types.h"

namespace stp::port {

class KeptLength {
 public:
  static constexpr std::size_t kShort = 4 << 20, kLong = 24 << 20;
  // Each call that reads walks along all messages that stay, so they are no more than so many.
  static constexpr std::size_t kFewMessages = 256, kManyMessages = 448;
  // A trial measures so many bytes with one length and then with the other, each after as many as
  // it takes until that is so. The next one is so many bytes later.
  static constexpr std::size_t kMeasured = 32 << 20, kHolds = std::size_t{4} << 30;
  // Where nothing comes for so long, nothing stays (KeptMessages::kWhile).
  static constexpr Time kPause = 2 * kMillisecond;
  // The long one has to gain an eighth: it takes memory, and a measurement is off by as much as a
  // twentieth where others use the CPUs now and then.
  static constexpr Time kGain = 8;

  // `longest`: in place of kLong, if there is room for less.
  explicit KeptLength(std::size_t longest) : long_(longest) {}

  [[nodiscard]] std::size_t bytes() const { return is_long_ ? long_ : kShort; }
  [[nodiscard]] std::size_t messages() const { return is_long_ ? kManyMessages : kFewMessages; }

  // So many bytes have come.
  void came(std::size_t bytes, Time now) {
    if (now - last_ > kPause) begin(now);
    last_ = now;
    bytes_ += bytes;
    if (bytes_ >= awaited_) next(now);
  }

 private:
  enum class Step : std::uint8_t { kHold, kSettle, kMeasure };

  // A trial begins again, with the length that was there before it.
  void begin(Time now) {
    if (step_ == Step::kHold) return;
    if (is_second_) is_long_ = !is_long_;
    is_second_ = false;
    go_to(Step::kSettle, kLong, now);
  }
  void next(Time now) {
    if (step_ != Step::kMeasure) return go_to(Step::kMeasure, kMeasured, now);
    taken_[is_long_ ? 1 : 0] = std::max<Time>(now - since_, 1);
    is_second_ = !is_second_;
    is_long_ = !is_long_;
    if (is_second_) return go_to(Step::kSettle, kLong, now);
    is_long_ = taken_[1] + taken_[1] / kGain < taken_[0];
    go_to(Step::kHold, kHolds, now);
  }
  void go_to(Step step, std::size_t bytes, Time now) {
    step_ = step;
    awaited_ = bytes;
    bytes_ = 0;
    since_ = now;
  }

  const std::size_t long_;
  bool is_long_ = false, is_second_ = false;
  Step step_ = Step::kSettle;
  std::size_t awaited_ = kLong, bytes_ = 0;
  Time since_ = 0, last_ = 0;
  std::array<Time, 2> taken_{};  // for kMeasured, with the short and the long one
};

}  // namespace stp::port
