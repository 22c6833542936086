// SPDX-License-Identifier: BSD-3-Clause
// Waiting, in one place: until a condition holds or a deadline comes. First the link is attended
// to for a moment (a local one is driven), then the thread sleeps on a futex word that the service
// bumps. Words are shared between processes.
#pragma once

#include <sys/time.h>

#include <atomic>
#include <cstdint>

#include "libst/client/backend.h"
#include "stp/base/assert.h"

namespace stp::client {

// Asleep while `word` is `seen`, at most until `deadline` and never longer than a slice: a service
// that dies wakes nobody. 0, or -EINTR when a signal handler ran.
int sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Time deadline);
// Makes everybody who sleeps on `word` look at what they wait for.
void wake_all(std::atomic<std::uint32_t>& word);
[[nodiscard]] Time now();
// When a timeout as of select() has passed: NULL is for ever, and 0 of it now, which is 0 and costs
// no look at the clock. 0 or -EINVAL.
int deadline_of(const timeval* timeout, Time& out);

// The page's word as a place to sleep on, as UserChannel is one.
class PageEvents {
 public:
  explicit PageEvents(service::ClientPage& page) : page_(page) {}
  std::uint32_t begin_sleep() {
    page_.sleepers.fetch_add(1);
    return page_.events.load();
  }
  void end_sleep() {
    auto const before = page_.sleepers.fetch_sub(1);
    STP_ASSERT(before > 0, "who ends a sleep has begun one");
  }
  std::atomic<std::uint32_t>* wake_word() { return &page_.events; }

 private:
  service::ClientPage& page_;
};

// 0: `ready` returned true. -EWOULDBLOCK: the deadline passed. -EINTR: a signal handler ran. Else
// why the service is gone. `ready` may be called with the drive lock held: it must ask nothing of
// the backend.
template <typename Place, typename Ready>
int wait_until(Backend& backend, Place& place, Time deadline, Ready ready) {
  if (backend.attend(Condition(ready), deadline)) return 0;
  if (deadline == 0) {
    auto const gone = backend.error();
    return gone != 0 ? gone : -EWOULDBLOCK;
  }
  for (;;) {
    auto const seen = place.begin_sleep();
    bool done = ready();
    int slept = 0;
    if (!done && now() < deadline) slept = sleep_on(*place.wake_word(), seen, deadline);
    place.end_sleep();
    if (done || ready()) return 0;
    if (slept == -EINTR) return slept;
    if (auto const gone = backend.error(); gone != 0) return gone;
    if (now() >= deadline) return -EWOULDBLOCK;
  }
}

// For what has no event: lets `time` pass while the link goes on.
void pause(Backend& backend, Time time);

}  // namespace stp::client
