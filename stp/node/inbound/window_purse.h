// SPDX-License-Identifier: BSD-3-Clause
// The share of an owner's budget that pays for tracking data on its way to the owner's connections.
// A connection takes bytes here before it allocates and returns them when it frees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "stp/base/assert.h"
#include "stp/node/inbound/window_budget.h"

namespace stp {

// The purse of one owner. Lives until everything of its connections is destroyed.
class WindowPurse {
 public:
  // Bytes taken from the budget at a time, to avoid a call for each Block.
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 16;

  // `budget` nullptr: no limit. Sets `freed` when memory that was short is free again.
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
  // Whether take(bytes) would succeed.
  [[nodiscard]] bool has(std::uint64_t bytes) {
    if (budget_ == nullptr || bytes <= held_ - used_) return true;
    short_ = !hold(rounded(used_ + bytes)) && !hold(used_ + bytes);
    return !short_;
  }
  [[nodiscard]] std::uint64_t used() const { return used_; }
  // The last has() that had to ask the budget found too little.
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

// Bytes taken from a purse, which must outlive this.
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

  // Takes `bytes` from `purse`, always the same one; nullptr: no limit. False: the purse has too
  // little.
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
