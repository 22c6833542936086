// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/background.h"

#include <chrono>
#include <utility>

#include "libst/client/wait.h"
#include "stp/base/assert.h"

namespace stp::managed {

void Background::start(std::function<Time()> turn) {
  STP_ASSERT(!thread_.joinable(), "a domain has one background thread");
  turn_ = std::move(turn);
  thread_ = std::thread([this] { run(); });
}

void Background::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  take_over();
  client::wake_all(events_word());
  thread_.join();
}

void Background::take_over() {
  {
    std::lock_guard const guard(mutex_);
    taken_over_ = true;
  }
  called_.notify_all();
}

void Background::leave() {
  // Sequentially consistent on both sides: either this thread sees far_away_, or the background
  // thread sees that the visitor has left.
  visitors_.fetch_sub(1);
  if (!far_away_.load()) return;
  { std::lock_guard const guard(mutex_); }  // it waits, or has not checked visitors_ yet
  called_.notify_all();
}

// Waits while the program's threads make progress. `visited`: a visit has begun since the last
// check, so waits for a short while (absence_). Otherwise the same visitor is still inside: it
// makes all progress and calls this thread when it leaves. Returns true if a visitor asked the
// thread to take over.
bool Background::stay_away(bool visited) {
  std::unique_lock guard(mutex_);
  far_away_ = !visited;
  if (!visited) absence_.end();
  const auto away = far_away_ && visitors_.load() != 0 ? kLongestSleep : absence_.prolong();
  if (!taken_over_ && !stopping_) called_.wait_for(guard, std::chrono::nanoseconds(away));
  far_away_ = false;
  return std::exchange(taken_over_, false);
}

void Background::sleep_until(std::uint32_t seen, Time deadline) {
  client::PageEvents page(backend_.page());
  const auto present = page.begin_sleep();
  if (present == seen && !stopping_) client::sleep_at(page, seen, deadline);
  page.end_sleep();
}

void Background::run() {
  std::uint32_t visits_seen = visits_;
  while (!stopping_) {
    const auto visits = visits_.load(std::memory_order_relaxed);
    if (visits != visits_seen || visitors_.load(std::memory_order_relaxed) != 0) {
      visits_seen = stay_away(visits != visits_seen) ? visits_.load() : visits;
      continue;
    }
    const auto seen = events_word().load();
    if (const auto deadline = turn_(); deadline != 0) sleep_until(seen, deadline);
  }
}

}  // namespace stp::managed
