// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/memory.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace stp::sim {
namespace {

constexpr std::byte kCanary{0xc9};

// The value differs between neighbouring bytes, and between the same byte of neighbouring STUs,
// Blocks and Transfers.
struct Pattern {
  explicit Pattern(std::uint64_t transfer) : key((transfer + 1) * 0x9e3779b97f4a7c15 >> 40) {}
  std::byte operator()(std::uint64_t at) const {
    return static_cast<std::byte>(key + at * 167 + (at >> 8) * 59 + (at >> 16) * 31 + (at >> 26));
  }
  std::uint64_t key;
};

}  // namespace

Memory::Memory(std::size_t size)
    : size_(size),
      bytes_(static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}))) {
  std::memset(bytes_, 0, size_);
}

Memory::~Memory() {
  ::operator delete (bytes_, std::align_val_t{kAlignment});
}

void fill_pattern(MutableBytes memory, std::uint64_t transfer, std::uint64_t from) {
  const Pattern pattern(transfer);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern(from + i);
}

bool has_pattern(Bytes memory, std::uint64_t transfer, std::uint64_t from) {
  const Pattern pattern(transfer);
  bool right = true;
  for (std::size_t i = 0; i < memory.size(); ++i) right &= memory[i] == pattern(from + i);
  return right;
}

void fill_canary(MutableBytes memory) {
  if (!memory.empty()) std::memset(memory.data(), static_cast<int>(kCanary), memory.size());
}

bool has_canary(Bytes memory) {
  return memory.empty() || (memory[0] == kCanary &&
                            std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
}

using wire::Function;

std::uint64_t SumWord::delta(const FetchTruth& fetch) {
  switch (fetch.function) {
    case Function::kFetchIncrement:
      return 1;
    case Function::kFetchDecrement:
      return ~std::uint64_t{0};
    default:
      return fetch.operand;
  }
}

void SumWord::succeeded(const FetchTruth& fetch, std::uint64_t before) {
  sum_ += fetch.function == Function::kFetchClear ? 0 - before : delta(fetch);
}

void SumWord::uncertain(const FetchTruth& fetch) {
  if (fetch.function == Function::kFetchClear)
    lost_clear_ = true;
  else
    uncertain_.push_back(delta(fetch));
}

bool SumWord::explains(std::uint64_t value) const {
  if (lost_clear_ || uncertain_.size() > kMaxTried) return true;  // cannot be known
  for (std::size_t done = 0; done < std::size_t{1} << uncertain_.size(); ++done) {
    auto sum = sum_;
    for (std::size_t i = 0; i < uncertain_.size(); ++i)
      if ((done >> i & 1) != 0) sum += uncertain_[i];
    if (sum == value) return true;
  }
  return false;
}

bool SwapWord::succeeded(const FetchTruth& fetch, std::uint64_t before) {
  last_seen_ = before;
  if (before != fetch.compare) return true;
  last_seen_ = fetch.operand;
  reached_.insert(fetch.operand);
  return left_.insert(before).second;
}

bool SwapWord::explains(std::uint64_t value) const {
  if (maybe_.contains(value)) return true;
  return reached_.contains(value) && !left_.contains(value);
}

std::size_t RegionTruth::draw_slot_size(std::size_t longest, Dice& dice) {
  const auto room = (longest - kWords * kWord) / kSlots;
  return static_cast<std::size_t>(dice.magnitude(1, room));
}

void RegionTruth::open(std::size_t slot_size, std::uint64_t pattern) {
  slot_size_ = slot_size;
  for (auto& slot : slots_) slot.pattern = pattern;
}

FetchTruth RegionTruth::draw_fetch(Dice& dice, std::uint64_t unique) const {
  FetchTruth fetch;
  fetch.word = dice.below(kWords);
  if (fetch.word >= kSumWords) {
    fetch.function = Function::kCompareAndSwap;
    fetch.compare = swaps_[fetch.word - kSumWords].last_seen();
    fetch.operand = unique;
    return fetch;
  }
  constexpr std::array kFunctions{Function::kFetchIncrement, Function::kFetchDecrement,
                                  Function::kFetchAdd, Function::kFetchClear};
  fetch.function = kFunctions[dice.below(kFunctions.size())];
  fetch.operand = dice.next64();
  return fetch;
}

bool RegionTruth::fetched(const FetchTruth& fetch, std::uint64_t before) {
  if (fetch.word >= kSumWords) return swaps_[fetch.word - kSumWords].succeeded(fetch, before);
  sums_[fetch.word].succeeded(fetch, before);
  return true;
}

void RegionTruth::fetch_failed(const FetchTruth& fetch) {
  if (fetch.word >= kSumWords)
    swaps_[fetch.word - kSumWords].uncertain(fetch);
  else
    sums_[fetch.word].uncertain(fetch);
}

bool RegionTruth::totals_right() const {
  if (!final_) return true;  // its host went down
  for (std::size_t word = 0; word < kWords; ++word) {
    const auto value = (*final_)[word];
    const bool right =
        word < kSumWords ? sums_[word].explains(value) : swaps_[word - kSumWords].explains(value);
    if (!right) return false;
  }
  return true;
}

}  // namespace stp::sim
