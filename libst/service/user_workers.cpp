// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/user_workers.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {
namespace {

// The daemon's own user and root never wait for a thread of others.
bool is_trusted(uid_t user) {
  return user == 0 || user == ::geteuid();
}

}  // namespace

struct UserWorkers::State {
  // The work of one user.
  struct Queue {
    std::deque<Work> waiting;
    unsigned busy = 0;  // threads that work for this user
  };
  using Queues = std::map<uid_t, Queue>;
  std::mutex mutex;
  std::condition_variable given, done;
  Queues queues;  // only those with work that waits or is being done
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
    auto work = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    ++queue.busy;
    --state->free;
    state->untrusted += counted;
    const auto another = state->wants_thread();  // this one may be held up for long
    lock.unlock();
    if (another) start_thread(state);
    work();
    work = nullptr;  // what it holds is released here, too
    lock.lock();
    STP_ASSERT(queue.busy > 0 && state->untrusted >= counted, "a thread that worked was counted");
    --queue.busy;
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

void UserWorkers::give(uid_t user, Work work) {
  bool another = false;
  {
    std::lock_guard const guard(state_->mutex);
    state_->queues[user].waiting.push_back(std::move(work));
    another = state_->wants_thread();
  }
  state_->given.notify_one();
  if (another) State::start_thread(state_);
}

std::shared_ptr<void> UserWorkers::guard(std::shared_ptr<UserWorkers> workers, uid_t user,
                                         std::shared_ptr<void> thing) {
  auto* const name = thing.get();
  return {name, [workers = std::move(workers), user, thing = std::move(thing)](void*) mutable {
            workers->give(user, [thing = std::move(thing)]() mutable { thing.reset(); });
          }};
}

bool UserWorkers::is_stuck(uid_t user) const {
  return waiting(user) >= kMostPerUser;
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
