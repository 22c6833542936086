// SPDX-License-Identifier: BSD-3-Clause
// Operations, and the list of those that are outstanding.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/managed/memory.h"
#include "stp/base/assert.h"

namespace stp::managed {

// A posted operation of any kind except a receive.
struct Operation {
  enum class Kind : std::uint8_t { kSend, kRead, kServe, kPut, kGet, kFetch };
  Kind kind = Kind::kSend;
  // After the start:
  bool begun = false, cancelled = false;
  bool eager = false;
  unsigned flags = 0;  // STM_QUIET, ...
  std::uint64_t context = 0;
  Memory* memory = nullptr;  // counts this operation in `uses` while it is outstanding
  void* ptr = nullptr;
  std::size_t length = 0;
  std::uint32_t tag = 0;
  std::uint32_t request = 0;  // kServe
  std::uint32_t key = 0;      // kPut, kGet, kFetch
  wire::Function function = wire::Function::kGet;
  std::uint64_t address = 0;
  std::uint64_t operand = 0, compare = 0;
  std::uint32_t message = 0, slot = 0;  // eager
  std::uint32_t ring_end = 0;           // eager: the position behind it, see eager_place()
  std::uint64_t write = 0;              // kSend, kServe: number among all Writes; 0: none
  unsigned* remote_uses = nullptr;      // kPut, kGet, kFetch: incremented while it is under way
  std::uint64_t posted = 0;             // position among operations and receives
  std::uint64_t id = 0;                 // in its OperationList; 0: complete

  [[nodiscard]] Address source() const { return memory != nullptr ? memory->at(ptr) : Address{}; }
  // For memory that the link uses a copy of: see Memory.
  void fetch() const {
    if (memory != nullptr) memory->fetch(ptr, length);
  }
  void store() const {
    const bool lands = kind == Kind::kRead || kind == Kind::kGet || kind == Kind::kFetch;
    if (lands && memory != nullptr) memory->store(ptr, length);
  }
};

// The outstanding operations of a connection, in the order of posting. Each has a number that is
// never used again. Places are reused, so posting seldom allocates, and operations never move.
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
  static constexpr std::size_t kChunk = 4;  // most connections have few at a time
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
