// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/operation_list.h"

namespace stp::managed {

std::uint32_t OperationList::free_place() {
  if (free_ == kNone) {
    auto const begin = static_cast<std::uint32_t>(chunks_.size()) * kChunk;
    chunks_.push_back(std::make_unique<Chunk>());
    for (auto place = begin + kChunk; place-- > begin; free_ = place) at(place).next = free_;
  }
  auto const place = free_;
  free_ = at(place).next;
  return place;
}

std::uint64_t OperationList::add(const Operation& operation) {
  auto const place = free_place();
  auto& node = at(place);
  node.operation = operation;
  if (operation.memory != nullptr) ++operation.memory->uses;
  if (++node.last_use == 0) ++node.last_use;
  node.use = node.last_use;
  node.previous = last_;
  node.next = kNone;
  if (last_ != kNone) at(last_).next = place;
  if (first_ == kNone) first_ = place;
  if (waiting_ == kNone) waiting_ = place;
  last_ = place;
  ++size_;
  return id_of(place);
}

void OperationList::remove(std::uint64_t id) {
  auto const place = place_of(id);
  auto& node = at(place);
  if (node.operation.memory != nullptr) --node.operation.memory->uses;
  if (waiting_ == place) waiting_ = node.next;
  (node.previous == kNone ? first_ : at(node.previous).next) = node.next;
  (node.next == kNone ? last_ : at(node.next).previous) = node.previous;
  node.use = 0;
  node.next = free_;
  free_ = place;
  --size_;
}

Operation* OperationList::find(std::uint64_t id) {
  auto const place = place_of(id);
  if (place >= chunks_.size() * kChunk) return nullptr;
  auto& found = at(place);
  return found.use != 0 && id_of(place) == id ? &found.operation : nullptr;
}

void OperationList::begun() {
  waiting_ = at(waiting_).next;
}

void OperationList::forget() {
  while (first_ != kNone) remove(id_of(first_));
}

}  // namespace stp::managed
