// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/operation_list.h"

#include "stp/base/assert.h"

namespace stp::managed {

void OperationList::grow() {
  auto place = chunks_.size() * kChunk;
  chunks_.push_back(std::make_unique<Chunk>());
  for (auto& node : *chunks_.back()) {
    node.next_id = kMark | place++;
    node.next = free_;
    free_ = &node;
  }
}

Operation& OperationList::add(const Operation& operation) {
  if (free_ == nullptr) grow();
  STP_ASSERT(size_ < kMost && free_->id == 0, "a free place is of no operation");
  auto& node = *free_;
  free_ = node.next;
  static_cast<Operation&>(node) = operation;
  node.id = node.next_id;
  STP_ASSERT(find(node.id) == &node, "an operation is found by its number");
  node.next_id = (node.next_id + kPlaces) & (2 * kMark - 1);
  if (node.next_id < kMark) node.next_id += kMark;
  if (node.memory != nullptr) ++node.memory->uses;
  node.previous = last_;
  node.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &node;
  last_ = &node;
  if (waiting_ == nullptr) waiting_ = &node;
  ++size_;
  return node;
}

void OperationList::remove(Operation& operation) {
  STP_ASSERT(size_ > 0 && find(operation.id) == &operation, "an operation is removed once");
  auto& node = static_cast<Node&>(operation);
  STP_ASSERT(node.memory == nullptr || node.memory->uses > 0, "an operation's memory is in use");
  if (node.memory != nullptr) --node.memory->uses;
  if (waiting_ == &node) waiting_ = node.next;
  (node.previous == nullptr ? first_ : node.previous->next) = node.next;
  (node.next == nullptr ? last_ : node.next->previous) = node.previous;
  node.id = 0;
  node.next = free_;
  free_ = &node;
  --size_;
  STP_ASSERT((size_ == 0) == (first_ == nullptr) && (size_ != 0 || waiting_ == nullptr),
             "a list without operations has no first one, and none that waits");
}

void OperationList::forget() {
  while (first_ != nullptr) remove(*first_);
}

}  // namespace stp::managed
