// SPDX-License-Identifier: BSD-3-Clause
// Progress of a domain: made by the program's threads that poll or wait, else by the domain's own
// thread.
#include <chrono>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "libst/managed/queue.h"

namespace stp::managed {
namespace {

// The thread's longest sleep.
constexpr Time kLongestSleep = 100 * kMillisecond;

}  // namespace

class Domain::Visit {
 public:
  explicit Visit(Domain& domain) : domain_(domain) { domain_.visitors_.fetch_add(1); }
  ~Visit() {
    // Sequentially consistent on both sides: either this thread sees far_away_, or the domain's
    // thread sees that the visitor has left.
    domain_.visitors_.fetch_sub(1);
    if (domain_.far_away_.load()) domain_.call();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Domain& domain_;
};

int Domain::drain(Queue& queue, stm_event_t* events, int max) {
  const auto count = queue.take(events, max);
  in_bulk_ = count > 1;
  if (places_freed_ && (agenda_.has_parked() || look_for_connections_ || link_watch_.is_behind()))
    progress();
  return count;
}

int Domain::poll(Queue& queue, stm_event_t* events, int max) {
  int count = 0;
  bool watched = false, short_of_staging = false;
  {
    if (has_unsent_.load(std::memory_order_relaxed)) {
      std::lock_guard const guard(mutex_);
      // attend() below makes the service send it, unless the service is asleep in another process.
      if (pump_all() && backend_->page().service_asleep.load() != 0) backend_->rung();
    }
    auto once = [] { return true; };
    backend_->attend(client::Condition(once), 0);
    std::lock_guard const guard(mutex_);
    visited();
    if (queue.destroyed()) return -EBADF;
    progress();
    count = drain(queue, events, max);
    watched = queue.has_descriptor();
    short_of_staging = needs_staging_;
  }
  if (short_of_staging) provide_staging();
  // The queue is empty and has a descriptor: the program is probably about to sleep on it.
  if (count == 0 && watched) take_over();
  return count;
}

int Domain::wait(Queue& queue, int threshold, stm_event_t* events, int max, Time deadline) {
  const Visit visit(*this);
  client::PageEvents page(backend_->page());
  for (int lost = 0;;) {
    const auto seen = events_word().load();
    auto until = deadline;
    {
      std::lock_guard const guard(mutex_);
      visited();
      if (queue.destroyed()) return -ECANCELED;
      progress();
      const auto over = client::now() >= deadline;
      if (queue.size() >= static_cast<std::size_t>(threshold) || (over && queue.size() > 0))
        return drain(queue, events, max);
      if (lost != 0) return queue.size() > 0 ? drain(queue, events, max) : lost;
      if (over) return -EWOULDBLOCK;
      until = needs_staging_ ? 0 : std::min(deadline, next_deadline());
      ++queue.waiters;
      ++waiters_;
      // A thread that posts with an earlier deadline wakes this one: the domain's thread does not
      // run meanwhile.
      thread_looks_.store(next_deadline(), std::memory_order_relaxed);
    }
    if (until == 0) provide_staging();
    auto news = [&] { return events_word().load() != seen; };
    const auto waited = client::wait_until(*backend_, page, until, news);
    std::lock_guard const guard(mutex_);
    --queue.waiters;
    --waiters_;
    if (waited == -EINTR && queue.size() == 0) return -EINTR;
    lost = backend_->error();
  }
}

// ---- the thread ----

void Domain::take_over() {
  {
    std::lock_guard const guard(called_mutex_);
    taken_over_ = true;
  }
  called_.notify_all();
}

void Domain::call() {
  { std::lock_guard const guard(called_mutex_); }  // it waits, or has not checked visitors_ yet
  called_.notify_all();
}

// Waits while the program's threads make progress. `visited`: a visit has begun since the last
// check, so waits for a short while (absence_). Otherwise the same visitor is still inside: it
// makes all progress and calls this thread when it leaves. Returns true if a visitor asked the
// thread to take over.
bool Domain::stay_away(bool visited) {
  std::unique_lock guard(called_mutex_);
  far_away_ = !visited;
  if (!visited) absence_.end();
  const auto away = far_away_ && visitors_.load() != 0 ? kLongestSleep : absence_.prolong();
  if (!taken_over_ && !stopping_) called_.wait_for(guard, std::chrono::nanoseconds(away));
  far_away_ = false;
  return std::exchange(taken_over_, false);
}

void Domain::sleep_until(std::uint32_t seen, Time deadline) {
  client::PageEvents page(backend_->page());
  const auto present = page.begin_sleep();
  if (present == seen && !stopping_) client::sleep_on(*page.wake_word(), seen, deadline);
  page.end_sleep();
}

void Domain::run() {
  std::uint32_t visits_seen = visits_;
  while (!stopping_) {
    const auto visits = visits_.load(std::memory_order_relaxed);
    if (visits != visits_seen || visitors_.load(std::memory_order_relaxed) != 0) {
      visits_seen = stay_away(visits != visits_seen) ? visits_.load() : visits;
      continue;
    }
    const auto seen = events_word().load();
    Time deadline = 0;
    bool short_of_staging = false;
    {
      std::lock_guard const guard(mutex_);
      progress();
      deadline = std::min(next_deadline(), time_ + kLongestSleep);
      thread_looks_.store(deadline, std::memory_order_relaxed);
      short_of_staging = needs_staging_;
    }
    if (short_of_staging && provide_staging() == 0) continue;
    sleep_until(seen, deadline);
  }
}

}  // namespace stp::managed
