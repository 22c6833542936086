// SPDX-License-Identifier: BSD-3-Clause
// Memory that stpd keeps for its bookkeeping, for when the system refuses any: under a limit of the
// address space, or without overcommit because programs have all. Otherwise a program that asks for
// as much as it gets would end stpd, at the next event that has to be written down.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stp::stpd {

// Address space, whose pages cost nothing until they are used. Any thread may use it. Blocks are
// halves of halves (a buddy system), so pieces that are given back become large ones again.
class MemoryReserve {
 public:
  // The tables of fixed size that stations of the network can fill take some 20 MiB in all.
  static constexpr std::size_t kSize = std::size_t{32} << 20, kLeast = 64;
  // When so much is used, memory is scarce (stp/base/scarce_memory.h).
  static constexpr std::size_t kScarce = kSize / 2;

  MemoryReserve();
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // nullptr: no block of that size is left. `alignment`: a power of two, of a page at most.
  void* take(std::size_t size, std::size_t alignment) noexcept;
  [[nodiscard]] bool has(const void* block) const noexcept {
    return at_ != nullptr &&
           reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(at_) < kSize;
  }
  // Requires has().
  void give_back(void* block) noexcept;
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  static constexpr std::size_t kUnits = kSize / kLeast;
  static constexpr unsigned kOrders = 20;  // of blocks of 1, 2, 4, ... units
  static_assert(kUnits == std::size_t{1} << (kOrders - 1));
  // What is said of the first unit of a block: its order and 1, and whether it is free. 0: none
  // begins there.
  static constexpr std::uint8_t kFree = 0x80;
  struct Links {
    std::uint32_t next, before;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  class Hold;

  [[nodiscard]] Links& links(std::uint32_t unit) const noexcept;
  void put(std::uint32_t unit, unsigned order) noexcept;
  void take_out(std::uint32_t unit, unsigned order) noexcept;
  void count(std::size_t more, std::size_t less) noexcept;

  std::byte* at_ = nullptr;
  std::uint8_t* blocks_ = nullptr;  // one for each unit
  std::array<std::uint32_t, kOrders> free_;
  std::atomic<std::size_t> used_{0};
  std::atomic_flag held_;
};

// From now on operator new of this process has one (allocation.cpp). Does nothing in builds with
// sanitizers.
void keep_memory_in_reserve();

}  // namespace stp::stpd
