// SPDX-License-Identifier: BSD-3-Clause
// Waits until a condition holds or a deadline passes. First the thread polls the condition for a
// moment, and drives the link meanwhile if that is in this process. Then it sleeps on a futex word
// that the service increments. Through stpd, the word is shared between processes.
#pragma once

#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "libst/client/backend.h"
#include "stp/base/assert.h"

namespace stp::client {

// Sleeps while `word` is `seen`, until `deadline` at most and never longer than a time slice,
// because a service that dies wakes nobody. Returns kWoken if somebody woke this thread, -EINTR
// after a signal handler ran, or 0.
inline constexpr int kWoken = 1;
int sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Time deadline);
// Wakes all other threads that sleep on `word`.
void wake_others(std::atomic<std::uint32_t>& word);
// Wakes all threads that sleep on `word`, so that they check their conditions.
void wake_all(std::atomic<std::uint32_t>& word);
[[nodiscard]] Time now();
// The deadline of a timeout as in select(). NULL: never. Zero: a deadline of 0, without reading the
// clock. Returns 0 or -EINVAL.
int deadline_of(const timeval* timeout, Time& out);

// Sleeps on the page's word. Has the same interface as UserChannel, which has a word of its own.
class PageEvents {
 public:
  explicit PageEvents(ipc::ClientPage& page) : page_(page) {}
  std::uint32_t begin_sleep() {
    page_.sleepers.fetch_add(1);
    return page_.events.load();
  }
  void end_sleep() {
    const auto before = page_.sleepers.fetch_sub(1);
    STP_ASSERT(before > 0, "who ends a sleep has begun one");
  }
  std::atomic<std::uint32_t>* wake_word() { return &page_.events; }
  bool passes_on() {
    if (page_.sleepers.load() <= 1) return false;
    const auto seen = page_.events.load();
    return page_.passed_on.exchange(seen) != seen;
  }

 private:
  ipc::ClientPage& page_;
};

// Sleeps as sleep_on(), between begin_sleep() and end_sleep() of the place. The service wakes one
// thread only; the thread that it has woken wakes the others. Returns 0 or -EINTR.
template <typename Place>
int sleep_at(Place& place, std::uint32_t seen, Time deadline) {
  auto& word = *place.wake_word();
  const auto slept = sleep_on(word, seen, deadline);
  if (slept != kWoken) return slept;
  if (place.passes_on()) wake_others(word);
  return 0;
}

// Returns 0 if `ready` returned true; -EWOULDBLOCK: the deadline passed; -EINTR: a signal handler
// ran; else why the service is gone. `ready` may be called with the drive lock held: it must send
// no request to the backend.
template <typename Place, typename Ready>
int wait_until(Backend& backend, Place& place, Time deadline, Ready ready) {
  const auto attended = backend.attend(Condition(ready), deadline);
  if (attended != -EAGAIN) return attended;
  if (deadline == 0) {
    const auto gone = backend.gone();
    return gone != 0 ? gone : -EWOULDBLOCK;
  }
  for (;;) {
    const auto seen = place.begin_sleep();
    bool done = ready();
    int slept = 0;
    if (!done && now() < deadline) slept = sleep_at(place, seen, deadline);
    place.end_sleep();
    if (done || ready()) return 0;
    if (slept == -EINTR) return slept;
    if (const auto gone = backend.gone(); gone != 0) return gone;
    if (now() >= deadline) return -EWOULDBLOCK;
  }
}

// Waits for `time` while the link is driven, for changes that no event announces.
void pause(Backend& backend, Time time);

}  // namespace stp::client
