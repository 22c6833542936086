// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/closer.h"

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "libst/service/nudge.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// The descriptors of one user and kind.
struct Lane {
  std::deque<UniqueFd> waiting;
  // For each thread of this lane: since when it has been closing a descriptor; nullopt: no thread.
  std::array<std::optional<Clock::time_point>, Closer::kThreadsPerUser> busy;

  [[nodiscard]] std::optional<std::size_t> free_place() const {
    for (std::size_t i = 0; i < busy.size(); ++i)
      if (!busy[i]) return i;
    return std::nullopt;
  }
  [[nodiscard]] std::size_t busy_count() const {
    std::size_t count = 0;
    for (const auto& since : busy) count += since ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::size_t lost(Clock::time_point now) const {
    std::size_t count = 0;
    for (const auto& since : busy) count += since && now - *since >= Closer::kLost ? 1 : 0;
    return count;
  }
};

struct Closer::State {
  std::mutex mutex;
  std::condition_variable given, done;
  using Key = std::pair<uid_t, Kind>;
  using Lanes = std::map<Key, Lane>;
  Lanes lanes;  // only those with a descriptor that waits or is being closed
  Key last_served{};
  std::size_t waiting = 0;         // descriptors of all users, including those being closed
  unsigned threads = 0, free = 0;  // free: threads that close nothing at present
  unsigned busy_for_users = 0;     // threads that close for others than operators
  const uid_t own = ::geteuid();
  bool stopping = false;

  [[nodiscard]] bool needs_thread() {
    return free == 0 && threads < kThreads && next() != lanes.end();
  }
  void count_thread() {
    ++threads;
    ++free;
  }

  [[nodiscard]] bool is_operator(uid_t user) const { return user == 0 || user == own; }
  // Serves users in turn, so that one with many descriptors does not occupy the threads.
  Lanes::iterator next() {
    const auto may = [this](const Lanes::value_type& each) {
      const auto& [key, lane] = each;
      return !lane.waiting.empty() && lane.free_place() &&
             (is_operator(key.first) || busy_for_users < kThreads - kThreadsOfOperators);
    };
    for (auto at = lanes.upper_bound(last_served); at != lanes.end(); ++at)
      if (may(*at)) return at;
    for (auto at = lanes.begin(); at != lanes.end() && at->first <= last_served; ++at)
      if (may(*at)) return at;
    return lanes.end();
  }

  [[nodiscard]] const Lane* lane(uid_t user, Kind kind) const {
    const auto at = lanes.find({user, kind});
    return at == lanes.end() ? nullptr : &at->second;
  }

  // Call without the lock.
  static void start_thread(const std::shared_ptr<State>& state) {
    try {
      std::thread([state] { work(state); }).detach();
    } catch (const std::system_error&) {  // the existing threads carry on, and tend() tries again
      std::lock_guard const guard(state->mutex);
      --state->threads;
      --state->free;
    }
  }

  static void work(const std::shared_ptr<State>& state) {
    Nudge nudge;
    std::unique_lock lock(state->mutex);
    for (;;) {
      const auto at = state->next();
      if (at != state->lanes.end())
        close_one(state, lock, at, nudge);
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

  // `lane` stays valid while the lock is released: nobody erases a lane with a busy thread.
  static void close_one(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock,
                        Lanes::iterator at, Nudge& nudge) {
    auto& lane = at->second;
    STP_ASSERT(!lane.waiting.empty() && lane.free_place(),
               "the lane that is next has a descriptor, and a place for a thread");
    STP_ASSERT(state->free > 0, "the thread that closes was free");
    state->last_served = at->first;
    auto file = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    auto& since = lane.busy[*lane.free_place()];
    since = Clock::now();
    --state->free;
    const unsigned of_users = state->is_operator(at->first.first) ? 0 : 1;
    state->busy_for_users += of_users;
    const auto another = state->needs_thread();  // this thread may block for ever in close()
    if (another) state->count_thread();
    lock.unlock();
    if (another) start_thread(state);
    {
      Nudge::Span const span(nudge);
      file.reset();
    }
    lock.lock();
    since.reset();
    ++state->free;
    state->busy_for_users -= of_users;
    STP_ASSERT(state->waiting > 0 && lane.busy_count() < lane.busy.size(),
               "a descriptor that is closed was counted");
    --state->waiting;
    if (lane.waiting.empty() && lane.busy_count() == 0) state->lanes.erase(at);
  }
};

Closer::Closer() : state_(std::make_shared<State>()) {}

Closer::~Closer() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->given.notify_all();
  state_->done.wait_for(lock, kFarewell, [this] { return state_->threads == 0; });
}

void Closer::close(uid_t user, UniqueFd file, Kind kind) {
  if (!file) return;
  bool more_threads = false;
  {
    std::lock_guard const guard(state_->mutex);
    state_->lanes[{user, kind}].waiting.push_back(std::move(file));
    ++state_->waiting;
    more_threads = state_->needs_thread();
    if (more_threads) state_->count_thread();
  }
  state_->given.notify_one();
  if (more_threads) State::start_thread(state_);
}

void Closer::tend() {
  {
    std::lock_guard const guard(state_->mutex);
    if (!state_->needs_thread()) return;
    state_->count_thread();
  }
  State::start_thread(state_);
}

void Closer::close(uid_t user, std::vector<UniqueFd>& files) {
  for (auto& file : files) close(user, std::move(file));
  files.clear();
}

std::size_t Closer::waiting() const {
  std::lock_guard const guard(state_->mutex);
  return state_->waiting;
}

std::size_t Closer::waiting(uid_t user, Kind kind) const {
  std::lock_guard const guard(state_->mutex);
  const auto* const lane = state_->lane(user, kind);
  return lane == nullptr ? 0 : lane->waiting.size() + lane->busy_count();
}

std::size_t Closer::lost() const {
  std::lock_guard const guard(state_->mutex);
  std::size_t count = 0;
  for (const auto& [key, lane] : state_->lanes) count += lane.lost(Clock::now());
  return count;
}

std::size_t Closer::lost(uid_t user) const {
  std::lock_guard const guard(state_->mutex);
  std::size_t count = 0;
  for (const auto kind : {Kind::kFile, Kind::kSocket})
    if (const auto* const lane = state_->lane(user, kind)) count += lane->lost(Clock::now());
  return count;
}

std::optional<uid_t> Closer::who_holds_up() const {
  std::lock_guard const guard(state_->mutex);
  for (const auto& [key, lane] : state_->lanes)
    if (lane.lost(Clock::now()) != 0) return key.first;
  return std::nullopt;
}

}  // namespace stp::service
