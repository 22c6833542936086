// SPDX-License-Identifier: BSD-3-Clause
// The memory that keeps track of what is on its way to an owner's connections, in its budget: what
// a connection makes takes it here first, and gives it back when it is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "stp/base/assert.h"
#include "stp/node/inbound/window_budget.h"

namespace stp {

// Of one owner. Lives until the last of what its connections had is destroyed.
class WindowPurse {
 public:
  // The budget is asked for this much at a time, not for each Block.
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 16;

  // `budget` nullptr: no bound. `freed` becomes true when there is room again that was missing.
  WindowPurse(WindowBudget* budget, std::uint64_t owner, bool& freed)
      : budget_(budget), owner_(owner), freed_(freed) {}
  ~WindowPurse() {
    STP_ASSERT(used_ == 0, "all that was taken has been given back when the purse goes");
    if (held_ != 0) budget_->hold(owner_, held_, 0);
  }
  WindowPurse(const WindowPurse&) = delete;
  WindowPurse& operator=(const WindowPurse&) = delete;

  [[nodiscard]] bool take(std::uint64_t bytes) {
    if (!has(bytes)) return false;
    used_ += bytes;
    STP_ASSERT(budget_ == nullptr || used_ <= held_, "what is used is held from the budget");
    return true;
  }
  void give(std::uint64_t bytes) {
    STP_ASSERT(bytes <= used_, "what is given back was taken");
    used_ -= bytes;
    if (short_) freed_ = true;
    if (budget_ != nullptr && held_ - used_ >= 2 * kStep) hold(rounded(used_));
  }
  // Whether so much could be taken.
  [[nodiscard]] bool has(std::uint64_t bytes) {
    if (budget_ == nullptr || bytes <= held_ - used_) return true;
    short_ = !hold(rounded(used_ + bytes)) && !hold(used_ + bytes);
    return !short_;
  }
  [[nodiscard]] std::uint64_t used() const { return used_; }
  // The last look found too little.
  [[nodiscard]] bool is_short() const { return short_; }

 private:
  static std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }
  bool hold(std::uint64_t bytes) {
    if (!budget_->hold(owner_, held_, bytes)) return false;
    held_ = bytes;
    return true;
  }

  WindowBudget* budget_;
  std::uint64_t owner_;
  bool& freed_;
  std::uint64_t used_ = 0, held_ = 0;
  bool short_ = false;
};

// So much of a purse, which outlives it.
class WindowBytes {
 public:
  WindowBytes() = default;
  ~WindowBytes() { reset(); }
  WindowBytes(WindowBytes&& other) noexcept
      : purse_(std::exchange(other.purse_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  WindowBytes& operator=(WindowBytes&& other) noexcept {
    std::swap(purse_, other.purse_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  WindowBytes(const WindowBytes&) = delete;
  WindowBytes& operator=(const WindowBytes&) = delete;

  // Of `purse`, nullptr for one without a bound: always the same. False: it does not have it.
  [[nodiscard]] bool add(WindowPurse* purse, std::uint64_t bytes) {
    STP_ASSERT(purse_ == nullptr || purse_ == purse, "it is all of one purse");
    if (purse == nullptr) return true;
    if (!purse->take(bytes)) return false;
    purse_ = purse;
    bytes_ += bytes;
    return true;
  }
  void give(std::uint64_t bytes) {
    if (purse_ == nullptr) return;
    STP_ASSERT(bytes <= bytes_, "what is given back was taken by the same");
    purse_->give(bytes);
    bytes_ -= bytes;
  }
  void reset() {
    if (purse_ != nullptr) std::exchange(purse_, nullptr)->give(std::exchange(bytes_, 0));
  }

 private:
  WindowPurse* purse_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace stp
