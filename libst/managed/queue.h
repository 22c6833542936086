// SPDX-License-Identifier: BSD-3-Clause
// A bounded queue of events. A producer reserves a place before it needs it, so no event is ever
// lost for lack of one. Everything except the constants is used under the domain's mutex.
#pragma once

#include <memory>

#include "libst/client/handle_table.h"
#include "libst/include/stp/managed.h"
#include "libst/os/unique_fd.h"
#include "stp/base/assert.h"
#include "stp/base/ring_queue.h"

namespace stp::managed {

class Domain;

class Queue {
 public:
  static constexpr client::Kind kKind = client::Kind::kQueue;
  static constexpr std::size_t kMaxCapacity = std::size_t{1} << 20;

  Queue(std::shared_ptr<Domain> domain, std::size_t capacity)
      : domain_(std::move(domain)), capacity_(capacity) {}

  [[nodiscard]] Domain& domain() const { return *domain_; }

  // Returns false if there are not that many free places.
  bool reserve(std::size_t places);
  void release(std::size_t places) {
    STP_ASSERT(places <= reserved_, "a place that is released was reserved");
    reserved_ -= places;
  }
  // Pushes into a reserved place.
  void push(const stm_event_t& event);
  // Takes at most `max` events.
  int take(stm_event_t* events, int max);

  int resize(std::size_t capacity);
  // An eventfd that is readable while there are events. Created on the first call.
  int descriptor();
  [[nodiscard]] bool has_descriptor() const { return static_cast<bool>(fd_); }

  [[nodiscard]] std::size_t size() const { return events_.size(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // At least half of the places are free: neither used nor reserved.
  [[nodiscard]] bool has_plenty() const { return (events_.size() + reserved_) * 2 <= capacity_; }

  // Counts the objects that report to this queue.
  void use() { ++users_; }
  void unuse() {
    STP_ASSERT(users_ > 0, "who stops using a queue has used it");
    --users_;
  }
  [[nodiscard]] bool used() const { return users_ != 0; }
  [[nodiscard]] bool destroyed() const { return destroyed_; }
  void destroy() { destroyed_ = true; }

  unsigned waiters = 0;  // threads in stm_queue_wait

 private:
  const std::shared_ptr<Domain> domain_;
  std::size_t capacity_, reserved_ = 0;
  RingQueue<stm_event_t> events_;
  service::UniqueFd fd_;
  unsigned users_ = 0;
  bool destroyed_ = false;
};

// A reference to a queue, with the places reserved in it.
class QueueUse {
 public:
  QueueUse() = default;
  explicit QueueUse(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {
    if (queue_) queue_->use();
  }
  QueueUse(QueueUse&& other) noexcept
      : queue_(std::move(other.queue_)), held_(std::exchange(other.held_, 0)) {}
  QueueUse& operator=(QueueUse&& other) noexcept {
    std::swap(queue_, other.queue_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~QueueUse() { reset(); }
  void reset() {
    if (!queue_) return;
    queue_->release(held_);
    queue_->unuse();
    held_ = 0;
    queue_.reset();
  }

  [[nodiscard]] explicit operator bool() const { return queue_ != nullptr; }
  [[nodiscard]] Queue& operator*() const { return *queue_; }
  [[nodiscard]] Queue* operator->() const { return queue_.get(); }

  bool reserve(std::size_t places = 1) {
    if (!queue_->reserve(places)) return false;
    held_ += places;
    return true;
  }
  void release() {
    STP_ASSERT(held_ > 0, "who releases a place holds one");
    queue_->release(1);
    --held_;
  }
  void push(const stm_event_t& event) {
    STP_ASSERT(held_ > 0, "who pushes an event holds a place for it");
    --held_;
    queue_->push(event);
  }
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] bool has_plenty() const { return queue_->has_plenty(); }

 private:
  std::shared_ptr<Queue> queue_;
  std::size_t held_ = 0;
};

}  // namespace stp::managed
