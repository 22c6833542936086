// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/foreign_files.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "stp/base/assert.h"

// Older C libraries have the member, and no name for it.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace stp::service {
namespace {

constexpr long kNudgeInterval = 1'000'000;  // nanoseconds

// Returns a signal that nothing else uses. Its handler is empty: the signal only has to arrive.
int nudging_signal() {
  static const int number = [] {
    const auto chosen = SIGRTMAX - 3;
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(chosen, &action, nullptr);  // without SA_RESTART: the signal ends waits
    return chosen;
  }();
  return number;
}

}  // namespace

Nudge::Nudge() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = nudging_signal();
  event.sigev_notify_thread_id = ::gettid();
  sigset_t let_in;
  sigemptyset(&let_in);
  sigaddset(&let_in, event.sigev_signo);
  ::pthread_sigmask(SIG_UNBLOCK, &let_in, nullptr);
  made_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
}

Nudge::~Nudge() {
  if (made_) ::timer_delete(timer_);
}

void Nudge::start() {
  set(kNudgeInterval);
}

void Nudge::stop() {
  set(0);
}

void Nudge::set(long nanoseconds) {
  if (!made_) return;
  const itimerspec when{.it_interval = {.tv_sec = 0, .tv_nsec = nanoseconds},
                        .it_value = {.tv_sec = 0, .tv_nsec = nanoseconds}};
  ::timer_settime(timer_, 0, &when, nullptr);
}

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

bool ForeignFiles::may_take(uid_t user) const {
  const auto waiting = closer_.waiting();
  return waiting == 0 || (waiting + kMostFds <= room_ && !is_stuck(user));
}

int ForeignFiles::receive(int socket, uid_t user, RequestMessage& request,
                          std::vector<UniqueFd>& fds) {
  const auto descriptors = may_take(user) ? Descriptors::kTake : Descriptors::kRefuse;
  if (descriptors == Descriptors::kTake && room_ >= kMostFds)
    return receive_request(socket, request, fds, Wait::kDontWait);
  Nudge::Span const span(*nudge_);  // the kernel closes those that it cannot deliver
  return receive_request(socket, request, fds, Wait::kDontWait, descriptors);
}

void ForeignFiles::hang_up(uid_t user, UniqueFd socket) {
  ::shutdown(socket.get(), SHUT_RDWR);
  close_socket(user, std::move(socket));
}

std::optional<ForeignFiles::Lost> ForeignFiles::tend() {
  closer_.tend();
  const auto before = std::exchange(lost_, closer_.lost());
  if (lost_ <= before) return std::nullopt;
  return Lost{lost_ - before, closer_.who_holds_up().value_or(0)};
}

}  // namespace stp::service
