// SPDX-License-Identifier: BSD-3-Clause
// Objects by id, where an id is never used again: it carries its place and a serial number.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace stp {

template <typename T>
class IdTable {
 public:
  // T has a member `id`, which is set.
  T& add(std::unique_ptr<T> object) {
    std::size_t index;
    if (free_.empty()) {
      index = slots_.size();
      slots_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    object->id = ++serial_ << kIndexBits | index;
    slots_[index] = std::move(object);
    return *slots_[index];
  }
  [[nodiscard]] T* find(std::uint64_t id) const {
    auto const index = id & ((std::uint64_t{1} << kIndexBits) - 1);
    if (index >= slots_.size() || !slots_[index] || slots_[index]->id != id) return nullptr;
    return slots_[index].get();
  }
  void remove(std::uint64_t id) {
    if (find(id) == nullptr) return;
    auto const index = id & ((std::uint64_t{1} << kIndexBits) - 1);
    slots_[index].reset();
    free_.push_back(index);
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (auto const& slot : slots_)
      if (slot) visit(*slot);
  }

 private:
  static constexpr unsigned kIndexBits = 20;
  std::vector<std::unique_ptr<T>> slots_;
  std::vector<std::size_t> free_;
  std::uint64_t serial_ = 0;
};

}  // namespace stp
