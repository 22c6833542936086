// SPDX-License-Identifier: BSD-3-Clause
// A map that keeps only its newest entries. The checker's memory must be bounded, however long or
// hostile a file is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>

namespace stp::replay {

template <typename Key, typename Value, std::size_t kCapacity, typename Hash = std::hash<Key>>
class Recent {
 public:
  Value* find(const Key& key) {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &at->second->second;
  }
  // Replaces an entry with the same key.
  Value& put(const Key& key, Value value) {
    erase(key);
    if (order_.size() == kCapacity) {
      index_.erase(order_.front().first);
      order_.pop_front();
      forgot_ = true;
    }
    order_.emplace_back(key, std::move(value));
    index_[key] = std::prev(order_.end());
    return order_.back().second;
  }
  // As find(). The entry counts as new then.
  Value* find_again(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    order_.splice(order_.end(), order_, at->second);
    return &at->second->second;
  }
  void erase(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return;
    order_.erase(at->second);
    index_.erase(at);
  }
  template <typename OfKey>
  void erase_if(OfKey&& of_key) {
    for (auto at = order_.begin(); at != order_.end();) {
      const auto next = std::next(at);
      if (of_key(at->first)) {
        index_.erase(at->first);
        order_.erase(at);
      }
      at = next;
    }
  }
  // Whether entries have been dropped: a missing key may have been there.
  [[nodiscard]] bool forgot() const { return forgot_; }
  [[nodiscard]] bool empty() const { return order_.empty(); }
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  auto begin() { return order_.begin(); }  // oldest first
  auto end() { return order_.end(); }

 private:
  using Order = std::list<std::pair<Key, Value>>;
  Order order_;
  std::unordered_map<Key, typename Order::iterator, Hash> index_;
  bool forgot_ = false;
};

enum class Kind { kTransfer, kRegion, kRing };

template <typename Value>
// The requests or grants of one side. Each kind makes room only for its own, so that regions stay
// known, however many Transfers there are meanwhile.
class ByKind {
 public:
  using Newest = Recent<std::uint32_t, Value, 512>;

  Value* find(std::uint32_t id) {
    for (auto& kept : kinds_)
      if (auto* const value = kept.find(id)) return value;
    return nullptr;
  }
  // As find(). The entry counts as new then.
  Value* find_again(std::uint32_t id) {
    for (auto& kept : kinds_)
      if (auto* const value = kept.find_again(id)) return value;
    return nullptr;
  }
  Value& put(std::uint32_t id, Value value) {
    for (auto& kept : kinds_) kept.erase(id);
    return kinds_[static_cast<std::size_t>(value.kind())].put(id, std::move(value));
  }
  [[nodiscard]] bool forgot() const {
    return kinds_[0].forgot() || kinds_[1].forgot() || kinds_[2].forgot();
  }
  Newest& transfers() { return kinds_[static_cast<std::size_t>(Kind::kTransfer)]; }

 private:
  std::array<Newest, 3> kinds_;
};

}  // namespace stp::replay
