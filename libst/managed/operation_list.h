// SPDX-License-Identifier: BSD-3-Clause
// The outstanding operations of a connection, in the order of posting. Each has a number that is
// never used again. Places are reused, so posting seldom allocates, and operations never move.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "libst/managed/operation.h"
#include "stp/base/assert.h"

namespace stp::managed {

class OperationList {
 public:
  // The number of places: the most operations at a time.
  static constexpr std::size_t kMost = std::size_t{1} << 16;

  OperationList() = default;
  OperationList(const OperationList&) = delete;
  OperationList& operator=(const OperationList&) = delete;
  ~OperationList() { forget(); }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Numbers have this bit, and are below twice its value.
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 60;
  Operation& add(const Operation& operation);
  void remove(Operation& operation);
  // nullptr: the operation is complete.
  [[nodiscard]] Operation* find(std::uint64_t id) const {
    const auto place = id % kPlaces;
    // A free place has number 0.
    if (id == 0 || place >= chunks_.size() * kChunk) return nullptr;
    auto& found = (*chunks_[place / kChunk])[place % kChunk];
    return found.id == id ? &found : nullptr;
  }
  // nullptr: none.
  [[nodiscard]] Operation* oldest() const { return first_; }
  [[nodiscard]] static Operation* next(const Operation& operation) {
    return static_cast<const Node&>(operation).next;
  }
  // The oldest operation that has not started; nullptr: none.
  [[nodiscard]] Operation* waiting() const { return waiting_; }
  // The operation of waiting() has started.
  void begun() {
    STP_ASSERT(waiting_ != nullptr, "what begins has waited");
    waiting_ = waiting_->next;
  }
  // Drops all operations and their holds on memory.
  void forget();

 private:
  // Number: mark | use of the place | place.
  static constexpr std::uint64_t kPlaces = kMost;
  static constexpr std::size_t kChunk = 16;
  struct Node : Operation {
    std::uint64_t next_id = 0;
    Node *previous = nullptr, *next = nullptr;
  };
  using Chunk = std::array<Node, kChunk>;
  void grow();

  std::vector<std::unique_ptr<Chunk>> chunks_;
  Node* free_ = nullptr;  // linked by `next`
  Node *first_ = nullptr, *last_ = nullptr, *waiting_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stp::managed
