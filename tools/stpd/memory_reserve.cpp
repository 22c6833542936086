// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/memory_reserve.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "stp/base/scarce_memory.h"

namespace stp::stpd {

// A lock below all others: any of them may be held where memory is taken. Held for some hundred
// instructions.
class MemoryReserve::Hold {
 public:
  explicit Hold(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) ::sched_yield();
  }
  ~Hold() { flag_.clear(std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::atomic_flag& flag_;
};

MemoryReserve::MemoryReserve() {
  free_.fill(kNone);
  auto* const at =
      ::mmap(nullptr, kSize + kUnits, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;  // it has nothing
  at_ = static_cast<std::byte*>(at);
  blocks_ = reinterpret_cast<std::uint8_t*>(at_ + kSize);
  put(0, kOrders - 1);
}

MemoryReserve::~MemoryReserve() {
  if (at_ != nullptr) ::munmap(at_, kSize + kUnits);
}

MemoryReserve::Links& MemoryReserve::links(std::uint32_t unit) const noexcept {
  return *reinterpret_cast<Links*>(at_ + unit * kLeast);
}

void MemoryReserve::put(std::uint32_t unit, unsigned order) noexcept {
  blocks_[unit] = static_cast<std::uint8_t>(order + 1) | kFree;
  links(unit) = {.next = free_[order], .before = kNone};
  if (free_[order] != kNone) links(free_[order]).before = unit;
  free_[order] = unit;
}

void MemoryReserve::take_out(std::uint32_t unit, unsigned order) noexcept {
  const auto [next, before] = links(unit);
  (before == kNone ? free_[order] : links(before).next) = next;
  if (next != kNone) links(next).before = before;
  blocks_[unit] = 0;
}

void MemoryReserve::count(std::size_t more, std::size_t less) noexcept {
  used_ += more - less;
  memory_is_scarce.store(used_ >= kScarce, std::memory_order_relaxed);
}

void* MemoryReserve::take(std::size_t size, std::size_t alignment) noexcept {
  const auto bytes = std::max({size, alignment, kLeast});
  if (bytes > kSize) return nullptr;
  const auto order = static_cast<unsigned>(std::bit_width((bytes - 1) / kLeast));
  const Hold hold(held_);
  auto of = order;
  while (of < kOrders && free_[of] == kNone) ++of;
  if (of == kOrders) return nullptr;
  const auto unit = free_[of];
  take_out(unit, of);
  while (of != order) {
    --of;
    put(unit + (1U << of), of);
  }
  blocks_[unit] = static_cast<std::uint8_t>(order + 1);
  count(kLeast << order, 0);
  return at_ + unit * kLeast;
}

void MemoryReserve::give_back(void* block) noexcept {
  const Hold hold(held_);
  auto unit = static_cast<std::uint32_t>((static_cast<std::byte*>(block) - at_) / kLeast);
  auto order = static_cast<unsigned>(blocks_[unit] - 1);
  blocks_[unit] = 0;
  count(0, kLeast << order);
  for (; order + 1 < kOrders; ++order) {
    const auto other = unit ^ (1U << order);
    if (blocks_[other] != (static_cast<std::uint8_t>(order + 1) | kFree)) break;
    take_out(other, order);
    unit = std::min(unit, other);
  }
  put(unit, order);
}

}  // namespace stp::stpd
