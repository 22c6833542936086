// SPDX-License-Identifier: BSD-3-Clause
// The outstanding operations of a connection, in the order of posting, each known by a number that
// no later one has. Places are used again, so posting takes nothing from the heap.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "libst/managed/operation.h"

namespace stp::managed {

class OperationList {
 public:
  OperationList() = default;
  OperationList(const OperationList&) = delete;
  OperationList& operator=(const OperationList&) = delete;
  ~OperationList() { forget(); }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Numbers have this bit, and are below twice its value.
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 60;
  std::uint64_t add(const Operation& operation);
  void remove(std::uint64_t id);
  // nullptr: it is over.
  [[nodiscard]] Operation* find(std::uint64_t id);
  // 0: none.
  [[nodiscard]] std::uint64_t oldest() const { return id_of(first_); }
  [[nodiscard]] std::uint64_t next(std::uint64_t id) const { return id_of(node(id).next); }
  // The oldest one that has not begun; 0: none.
  [[nodiscard]] std::uint64_t waiting() const { return id_of(waiting_); }
  // That one has.
  void begun();
  // All of them, with their holds on memory.
  void forget();

 private:
  // Number: mark | use of the place (32 bits, from 1 on) | place.
  static constexpr unsigned kPlaceBits = 16;
  static constexpr std::uint32_t kChunk = 16, kNone = ~std::uint32_t{0};
  struct Node {
    Operation operation;
    std::uint32_t use = 0;  // 0: free
    std::uint32_t last_use = 0;
    std::uint32_t previous = kNone, next = kNone;
  };
  using Chunk = std::array<Node, kChunk>;

  [[nodiscard]] Node& at(std::uint32_t place) const {
    return (*chunks_[place / kChunk])[place % kChunk];
  }
  static std::uint32_t place_of(std::uint64_t id) {
    return static_cast<std::uint32_t>(id & ((std::uint64_t{1} << kPlaceBits) - 1));
  }
  [[nodiscard]] Node& node(std::uint64_t id) const { return at(place_of(id)); }
  [[nodiscard]] std::uint64_t id_of(std::uint32_t place) const {
    return place == kNone ? 0 : kMark | std::uint64_t{at(place).use} << kPlaceBits | place;
  }
  std::uint32_t free_place();

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::uint32_t free_ = kNone;  // by next
  std::uint32_t first_ = kNone, last_ = kNone, waiting_ = kNone;
  std::size_t size_ = 0;
};

}  // namespace stp::managed
