// SPDX-License-Identifier: BSD-3-Clause
// What must be found in memory: patterns and canaries, and the words of a region that FetchOps
// change.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "stp/types.h"
#include "stp/wire/layout.h"
#include "tools/sim/run.h"

namespace stp::sim {

// Memory in which every byte can be checked: a pattern identifies the Transfer of a byte, and a
// canary fills the bytes that must not be written.

// Zeroed memory, aligned as user memory must be.
class Memory {
 public:
  static constexpr std::size_t kAlignment = 4096;
  explicit Memory(std::size_t size);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] MutableBytes all() const { return {bytes_, size_}; }
  [[nodiscard]] std::byte* data() const { return bytes_; }

 private:
  std::size_t size_;
  std::byte* bytes_;
};

// The bytes of a Transfer, from number `from`.
void fill_pattern(MutableBytes memory, std::uint64_t transfer, std::uint64_t from = 0);
bool has_pattern(Bytes memory, std::uint64_t transfer, std::uint64_t from = 0);

void fill_canary(MutableBytes memory);
bool has_canary(Bytes memory);

inline constexpr std::size_t kWord = sizeof(std::uint64_t);

// A FetchOp as its requester sees it.
struct FetchTruth {
  std::size_t word = 0;
  wire::Function function = wire::Function::kFetchIncrement;
  std::uint64_t operand = 0, compare = 0;
};

// A word that FetchOps add to and clear. In any order, no change may be lost or made twice.
class SumWord {
 public:
  void succeeded(const FetchTruth& fetch, std::uint64_t before);
  void uncertain(const FetchTruth& fetch);  // ended with an error: done once or not at all
  [[nodiscard]] bool explains(std::uint64_t value) const;

 private:
  static constexpr std::size_t kMaxTried = 12;  // tries 2^12 combinations of uncertain operations
  static std::uint64_t delta(const FetchTruth& fetch);
  std::uint64_t sum_ = 0;
  std::vector<std::uint64_t> uncertain_;
  bool lost_clear_ = false;
};

// A word that each successful swap sets to a new value. No value may be swapped out twice.
class SwapWord {
 public:
  // Returns false if two compare-and-swaps have replaced the same value.
  bool succeeded(const FetchTruth& fetch, std::uint64_t before);
  void uncertain(const FetchTruth& fetch) { maybe_.insert(fetch.operand); }
  [[nodiscard]] bool explains(std::uint64_t value) const;
  [[nodiscard]] std::uint64_t last_seen() const { return last_seen_; }

 private:
  std::set<std::uint64_t> left_, reached_{0}, maybe_;
  std::uint64_t last_seen_ = 0;
};

// The expected content of a region that one side opened to the other: counters, which each FetchOp
// must change exactly once, and slots, each of which is the target of one Put or Get at a time.
class RegionTruth {
 public:
  static constexpr std::size_t kSumWords = 2, kWords = 4, kSlots = 4;
  struct Slot {
    std::optional<std::uint64_t> pattern;  // nullopt: unknown after a failed operation
    bool busy = false;
  };

  // The region fits into `longest` bytes.
  static std::size_t draw_slot_size(std::size_t longest, Dice& dice);
  static std::size_t length_of(std::size_t slot_size) {
    return kWords * kWord + kSlots * slot_size;
  }

  void open(std::size_t slot_size, std::uint64_t pattern);
  [[nodiscard]] std::size_t slot_size() const { return slot_size_; }
  [[nodiscard]] std::size_t slot_offset(std::size_t slot) const {
    return kWords * kWord + slot * slot_size_;
  }
  Slot& slot(std::size_t index) { return slots_[index]; }

  void end() { ended_ = true; }  // the side that uses it has ended it
  [[nodiscard]] bool ended() const { return ended_; }

  FetchTruth draw_fetch(Dice& dice, std::uint64_t unique) const;
  bool fetched(const FetchTruth& fetch, std::uint64_t before);
  void fetch_failed(const FetchTruth& fetch);
  // Takes the final values of the words.
  void close(const std::array<std::uint64_t, kWords>& words) { final_ = words; }
  [[nodiscard]] bool totals_right() const;

 private:
  std::size_t slot_size_ = 0;
  bool ended_ = false;
  std::array<Slot, kSlots> slots_;
  std::array<SumWord, kSumWords> sums_;
  std::array<SwapWord, kWords - kSumWords> swaps_;
  std::optional<std::array<std::uint64_t, kWords>> final_;
};

}  // namespace stp::sim
