// SPDX-License-Identifier: BSD-3-Clause
// Who makes a domain's progress: the program's threads that poll or wait, else its background
// thread.
#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "libst/managed/queue.h"

namespace stp::managed {

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
    background_.visited();
    if (queue.destroyed()) return -EBADF;
    progress();
    count = drain(queue, events, max);
    watched = queue.has_descriptor();
    short_of_staging = needs_staging_;
  }
  if (short_of_staging) provide_staging();
  // The queue is empty and has a descriptor: the program is probably about to sleep on it.
  if (count == 0 && watched) background_.take_over();
  return count;
}

int Domain::wait(Queue& queue, int threshold, stm_event_t* events, int max, Time deadline) {
  const Background::Visit visit(background_);
  client::PageEvents page(backend_->page());
  for (int lost = 0;;) {
    const auto seen = events_word().load();
    auto until = deadline;
    {
      std::lock_guard const guard(mutex_);
      background_.visited();
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

Time Domain::background_turn() {
  Time deadline = 0;
  bool short_of_staging = false;
  {
    std::lock_guard const guard(mutex_);
    progress();
    deadline = std::min(next_deadline(), time_ + Background::kLongestSleep);
    thread_looks_.store(deadline, std::memory_order_relaxed);
    short_of_staging = needs_staging_;
  }
  return short_of_staging && provide_staging() == 0 ? 0 : deadline;
}

}  // namespace stp::managed
