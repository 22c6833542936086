// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/user_workers.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "libst/os/mapping_turn.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

// The daemon's own user and root never wait for a thread of others.
bool is_trusted(uid_t user) {
  return user == 0 || user == ::geteuid();
}

// How long this thread could have run so far, but had no processor. nullopt: the kernel does not
// tell.
std::optional<std::chrono::nanoseconds> wait_for_processor() {
  std::ifstream in("/proc/thread-self/schedstat");
  long long ran = 0, waited = 0;
  if (!(in >> ran >> waited)) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

}  // namespace

struct UserWorkers::State {
  // The work of one user.
  struct Queue {
    struct Item {
      Work work;
      Kind kind;
    };
    std::deque<Item> waiting;
    unsigned busy = 0;      // threads that work for this user
    std::size_t asked = 0;  // that waits or is being done, and is no release
  };
  using Queues = std::map<uid_t, Queue>;
  // How long a user's work has slept, as of `when`.
  struct Sleep {
    std::chrono::nanoseconds total{0};
    Clock::time_point when;
    [[nodiscard]] std::chrono::nanoseconds at(Clock::time_point now) const {
      return total - (now - when) / kForgiven;
    }
  };
  std::mutex mutex;
  std::condition_variable given, done;
  Queues queues;                  // only those with work that waits or is being done
  std::map<uid_t, Sleep> sleeps;  // only what is not forgiven
  uid_t last_served = 0;
  unsigned threads = 0, free = 0;  // free: threads that have no work at present
  unsigned untrusted = 0;          // threads that work for users who are not trusted
  bool stopping = false;

  [[nodiscard]] bool may_work_for(const Queues::value_type& entry) const {
    const auto& [user, queue] = entry;
    return !queue.waiting.empty() && queue.busy < kThreadsPerUser &&
           (untrusted < kThreads || is_trusted(user));
  }
  // Serves users in turn, so that one with much work does not occupy the threads.
  Queues::iterator next() {
    for (auto at = queues.upper_bound(last_served); at != queues.end(); ++at)
      if (may_work_for(*at)) return at;
    for (auto at = queues.begin(); at != queues.end() && at->first <= last_served; ++at)
      if (may_work_for(*at)) return at;
    return queues.end();
  }
  // `off`: how long a thread has not run in turns, `waited`: how long it waited for a processor.
  void add_sleep(uid_t user, std::chrono::nanoseconds off, std::chrono::nanoseconds waited) {
    const auto time = off - waited;
    if (time < kLongSleep || is_trusted(user)) return;
    const auto now = Clock::now();
    std::erase_if(sleeps, [now](const auto& entry) { return entry.second.at(now).count() <= 0; });
    auto& sleep = sleeps[user];
    sleep = {std::max(sleep.at(now), std::chrono::nanoseconds(0)) + time, now};
  }
  // Counts a thread that is about to be started, if one is needed.
  bool wants_thread() {
    if (free != 0 || threads == kThreads + kThreadsPerUser || next() == queues.end()) return false;
    ++threads;
    ++free;
    return true;
  }

  // Call without the lock, after wants_thread().
  static void start_thread(const std::shared_ptr<State>& state) {
    try {
      std::thread([state] { run(state); }).detach();
    } catch (const std::system_error&) {  // the existing threads carry on, and tend() tries again
      std::lock_guard const guard(state->mutex);
      --state->threads;
      --state->free;
    }
  }

  static void run(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    for (;;) {
      const auto at = state->next();
      if (at != state->queues.end())
        work_one(state, lock, at);
      else if (!state->stopping)
        state->given.wait(lock);
      else
        break;
    }
    STP_ASSERT(state->free > 0 && state->free <= state->threads, "a thread that ends was free");
    --state->free;
    --state->threads;
    state->done.notify_all();
  }

  // `at` stays valid while the lock is released: nobody erases a queue with a busy thread.
  static void work_one(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock,
                       Queues::iterator at) {
    auto& queue = at->second;
    const auto counted = is_trusted(at->first) ? 0U : 1U;
    state->last_served = at->first;
    auto [work, kind] = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    ++queue.busy;
    --state->free;
    state->untrusted += counted;
    const auto another = state->wants_thread();  // this one may be held up for long
    lock.unlock();
    if (another) start_thread(state);
    MappingTurn::time_off() = {};
    const auto waited_before = wait_for_processor();
    work();
    work = nullptr;  // what it holds is released here, too
    const auto off = MappingTurn::time_off();
    const auto waited = off < kLongSleep ? waited_before : wait_for_processor();
    lock.lock();
    if (waited_before && waited) state->add_sleep(at->first, off, *waited - *waited_before);
    STP_ASSERT(queue.busy > 0 && state->untrusted >= counted, "a thread that worked was counted");
    --queue.busy;
    if (kind == Kind::kAsked) --queue.asked;
    ++state->free;
    state->untrusted -= counted;
    if (queue.waiting.empty() && queue.busy == 0) state->queues.erase(at);
  }
};

UserWorkers::UserWorkers() : state_(std::make_shared<State>()) {}

UserWorkers::~UserWorkers() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->given.notify_all();
  state_->done.wait_for(lock, kFarewell, [this] { return state_->threads == 0; });
}

void UserWorkers::give(uid_t user, Work work, Kind kind) {
  bool another = false;
  {
    std::lock_guard const guard(state_->mutex);
    auto& queue = state_->queues[user];
    queue.waiting.push_back({std::move(work), kind});
    if (kind == Kind::kAsked) ++queue.asked;
    another = state_->wants_thread();
  }
  state_->given.notify_one();
  if (another) State::start_thread(state_);
}

std::shared_ptr<void> UserWorkers::guard(std::shared_ptr<UserWorkers> workers, uid_t user,
                                         std::shared_ptr<void> thing) {
  auto* const name = thing.get();
  return {name, [workers = std::move(workers), user, thing = std::move(thing)](void*) mutable {
            workers->give(
                user, [thing = std::move(thing)]() mutable { thing.reset(); }, Kind::kRelease);
          }};
}

bool UserWorkers::has_slept(uid_t user, Clock::time_point now) const {
  std::lock_guard const guard(state_->mutex);
  const auto at = state_->sleeps.find(user);
  return at != state_->sleeps.end() && at->second.at(now) > kMostSlept;
}

bool UserWorkers::is_stuck(uid_t user, Clock::time_point now) const {
  if (has_slept(user, now)) return true;
  std::lock_guard const guard(state_->mutex);
  const auto at = state_->queues.find(user);
  return at != state_->queues.end() && at->second.asked >= kMostPerUser;
}

void UserWorkers::tend() {
  {
    std::lock_guard const guard(state_->mutex);
    if (!state_->wants_thread()) return;
  }
  State::start_thread(state_);
}

std::size_t UserWorkers::waiting(uid_t user) const {
  std::lock_guard const guard(state_->mutex);
  const auto at = state_->queues.find(user);
  return at == state_->queues.end() ? 0 : at->second.waiting.size() + at->second.busy;
}

}  // namespace stp::service
