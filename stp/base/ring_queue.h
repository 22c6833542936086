// SPDX-License-Identifier: BSD-3-Clause
// A queue in one block of memory that doubles when full and is never freed before the queue, so
// steady use allocates nothing. Elements may move when it grows. The block begins with a cache
// line: in a queue that mostly has one element, that is in as few lines as it can be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"

namespace stp {

template <typename T>
class RingQueue {
  template <typename Queue, typename Value>
  class Place {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Place() = default;
    Place(Queue* queue, std::size_t index) : queue_(queue), index_(index) {}
    reference operator*() const { return (*queue_)[index_]; }
    pointer operator->() const { return &**this; }
    reference operator[](difference_type n) const { return *(*this + n); }
    Place& operator++() { return *this += 1; }
    Place& operator--() { return *this -= 1; }
    Place operator++(int) { return {queue_, index_++}; }
    Place operator--(int) { return {queue_, index_--}; }
    Place& operator+=(difference_type n) {
      index_ += static_cast<std::size_t>(n);
      return *this;
    }
    Place& operator-=(difference_type n) { return *this += -n; }
    friend Place operator+(Place place, difference_type n) { return place += n; }
    friend Place operator+(difference_type n, Place place) { return place += n; }
    friend Place operator-(Place place, difference_type n) { return place -= n; }
    friend difference_type operator-(const Place& a, const Place& b) {
      return static_cast<difference_type>(a.index_ - b.index_);
    }
    friend bool operator==(const Place& a, const Place& b) { return a.index_ == b.index_; }
    friend auto operator<=>(const Place& a, const Place& b) { return a.index_ <=> b.index_; }

   private:
    Queue* queue_ = nullptr;
    std::size_t index_ = 0;
  };

 public:
  using iterator = Place<RingQueue, T>;
  using const_iterator = Place<const RingQueue, const T>;

  RingQueue() = default;
  RingQueue(RingQueue&& other) noexcept { swap(other); }
  RingQueue& operator=(RingQueue&& other) noexcept {
    swap(other);
    return *this;
  }
  ~RingQueue() {
    std::destroy_n(places_, capacity_);
    ::operator delete(places_, kAlignment);
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  T& operator[](std::size_t index) {
    STP_ASSERT(index < size_, "an index lies within the queue");
    return places_[(first_ + index) & mask()];
  }
  const T& operator[](std::size_t index) const {
    STP_ASSERT(index < size_, "an index lies within the queue");
    return places_[(first_ + index) & mask()];
  }
  T& front() {
    STP_ASSERT(size_ > 0, "a queue that is asked for its first element has one");
    return places_[first_];
  }
  const T& front() const {
    STP_ASSERT(size_ > 0, "a queue that is asked for its first element has one");
    return places_[first_];
  }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size_}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }

  // `value` may come from an element of this queue.
  void push_back(T value) { place() = std::move(value); }
  // Appends an element to be filled in. A type without resources keeps the old content of its
  // place.
  T& place() {
    if (size_ == capacity_) grow();
    return (*this)[size_++];
  }
  // The same of up to `most`, which is not 0: as many as stand in a row, at least one.
  std::span<T> places(std::size_t most) {
    if (size_ == capacity_) grow();
    const auto at = (first_ + size_) & mask();
    const auto count = std::min<std::size_t>({most, capacity_ - size_, capacity_ - at});
    size_ += static_cast<std::uint32_t>(count);
    return {places_ + at, count};
  }
  // Up to `most` from that one on: as many as stand in a row.
  [[nodiscard]] std::span<const T> row(std::size_t index, std::size_t most) const {
    STP_ASSERT(index < size_, "an index lies within the queue");
    const auto at = (first_ + index) & mask();
    return {places_ + at, std::min<std::size_t>({most, size_ - index, capacity_ - at})};
  }
  // A queue that gets empty begins again with its first place: one that never holds many elements
  // uses the same few cache lines all the time.
  void pop_front() {
    reset(front());
    first_ = --size_ == 0 ? 0 : (first_ + 1) & mask();
  }
  // The first ones, of a type without resources.
  void pop_front(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    STP_ASSERT(count <= size_, "a queue has what is taken from it");
    size_ -= static_cast<std::uint32_t>(count);
    first_ = size_ == 0 ? 0 : (first_ + static_cast<std::uint32_t>(count)) & mask();
  }
  void pop_back() {
    reset(back());
    --size_;
  }
  iterator erase(iterator at) {
    std::move(at + 1, end(), at);
    pop_back();
    return at;
  }
  // Where the first element is, or the next one if there is none. Not to be read.
  [[nodiscard]] const T* first_place() const { return places_ + first_; }
  // Removes the last elements until `size` are left.
  void truncate(std::size_t size) {
    while (size_ > size) pop_back();
  }
  void clear() { truncate(0); }

 private:
  static constexpr std::uint32_t kFirst = 4;
  static constexpr std::align_val_t kAlignment{std::max(alignof(T), kCacheLine)};

  // Empty, with that many places.
  explicit RingQueue(std::uint32_t capacity)
      : places_(static_cast<T*>(::operator new(capacity * sizeof(T), kAlignment))) {
    std::uninitialized_value_construct_n(places_, capacity);
    capacity_ = capacity;
  }
  void swap(RingQueue& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(first_, other.first_);
    std::swap(capacity_, other.capacity_);
    std::swap(places_, other.places_);
  }
  [[nodiscard]] std::uint32_t mask() const { return capacity_ - 1; }
  static void reset(T& element) {
    if constexpr (!std::is_trivially_destructible_v<T>) element = T{};
  }
  [[gnu::cold, gnu::noinline]] void grow() {
    RingQueue larger(capacity_ == 0 ? kFirst : capacity_ * 2);
    for (std::uint32_t i = 0; i < size_; ++i) larger.places_[i] = std::move((*this)[i]);
    larger.size_ = size_;
    swap(larger);
    STP_ASSERT((capacity_ & mask()) == 0 && size_ < capacity_,
               "a queue that has grown has a power of two of places, and one is free");
  }

  // The size comes first, because many only look whether the queue is empty.
  std::uint32_t size_ = 0, first_ = 0;
  std::uint32_t capacity_ = 0;  // a power of two, or 0
  T* places_ = nullptr;
};

template <typename T, typename Predicate>
void erase_if(RingQueue<T>& queue, Predicate predicate) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (predicate(queue[i])) continue;
    if (kept != i) queue[kept] = std::move(queue[i]);
    ++kept;
  }
  queue.truncate(kept);
}

}  // namespace stp
