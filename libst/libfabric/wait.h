// SPDX-License-Identifier: BSD-3-Clause
// What a program sleeps on until a queue or a counter has something: readable when the link has
// events for any object, or when another thread's call has put an event into this object. Created
// on demand, because a descriptor on a link's queue costs a system call per event.
#pragma once

#include <rdma/fi_eq.h>

#include <chrono>

#include "libst/libfabric/link_mutex.h"

namespace stp::fi {

using Clock = std::chrono::steady_clock;

// In milliseconds; negative: never.
[[nodiscard]] Clock::time_point deadline_in(int timeout);

class Link;

class Wait {
 public:
  // Whether an object may be opened with that wait object.
  static bool offers(fi_wait_obj wanted);
  // `wanted`: one that is offered.
  Wait(Link& link, fi_wait_obj wanted);
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();
  // Whether a program may sleep on the object.
  [[nodiscard]] bool possible() const { return kind_ != FI_WAIT_NONE; }

  // ---- under the link's mutex ----
  // Call before sleep(). Returns 0 or a negative errno.
  int open();
  void wake();
  // The object has no events any more.
  void clear();
  // fi_control() of the object: FI_GETWAITOBJ and FI_GETWAIT. `has_events`: it is readable at once.
  int control(int command, void* argument, bool has_events);

  // Sleeps without the mutex, which `lock` holds. Returns 0, also when the deadline has passed, or
  // -FI_EINTR: a signal has arrived before.
  int sleep(LinkLock& lock, Clock::time_point deadline) const;

 private:
  [[nodiscard]] bool is_open() const { return epoll_ >= 0; }

  Link& link_;
  const fi_wait_obj kind_;
  int epoll_ = -1, event_ = -1;
  bool awake_ = false;
};

}  // namespace stp::fi
