// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "libst/managed/domain.h"
#include "stp/base/assert.h"

namespace stp::managed {

bool Queue::reserve(std::size_t places) {
  if (events_.size() + reserved_ + places > capacity_) return false;
  reserved_ += places;
  return true;
}

void Queue::push(const stm_event_t& event) {
  STP_ASSERT(reserved_ > 0, "an event has a place that was reserved");
  --reserved_;
  events_.place() = event;
  STP_ASSERT(events_.size() + reserved_ <= capacity_, "a queue holds no more than it may");
  if (fd_ && events_.size() == 1) ::eventfd_write(fd_.get(), 1);
  if (waiters != 0) domain_->wake_waiters();
}

int Queue::take(stm_event_t* events, int max) {
  const auto count = std::min(events_.size(), static_cast<std::size_t>(std::max(max, 0)));
  for (std::size_t i = 0; i < count; ++i, events_.pop_front()) events[i] = events_.front();
  if (count == 0) return 0;
  domain_->places_freed();
  if (fd_ && events_.empty()) {
    std::uint64_t value;
    // Reading resets the descriptor to not readable.
    [[maybe_unused]] const auto got = ::read(fd_.get(), &value, sizeof value);
  }
  return static_cast<int>(count);
}

int Queue::resize(std::size_t capacity) {
  if (capacity == 0 || capacity > kMaxCapacity || capacity < events_.size() + reserved_)
    return -EINVAL;
  capacity_ = capacity;
  return 0;
}

int Queue::descriptor() {
  if (!fd_) fd_.reset(::eventfd(events_.empty() ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd_ ? fd_.get() : -errno;
}

}  // namespace stp::managed
