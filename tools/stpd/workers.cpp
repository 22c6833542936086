// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/workers.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "libst/os/mapping_turn.h"
#include "stp/base/assert.h"
#include "stp/base/mutex.h"
#include "stp/base/scarce_memory.h"

// Older C libraries have the member, and no name for it.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace stp::stpd {
namespace {

// How long this thread could have run so far, but had no processor. nullopt: the kernel does not
// tell.
std::optional<std::chrono::nanoseconds> wait_for_processor() {
  std::ifstream in("/proc/thread-self/schedstat");
  long long ran = 0, waited = 0;
  if (!(in >> ran >> waited)) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

// The first entry behind that of `last` that may be served, from the beginning again behind the
// end: so one user with much work does not occupy the threads.
template <typename Map, typename May>
typename Map::iterator next_in_turn(Map& all, const typename Map::key_type& last, const May& may) {
  const auto start = all.upper_bound(last);
  if (const auto at = std::find_if(start, all.end(), may); at != all.end()) return at;
  const auto at = std::find_if(all.begin(), start, may);
  return at == start ? all.end() : at;
}

}  // namespace

void UserCosts::took(uid_t user, Time time, Clock::time_point now) {
  if (time < counts_ || ipc::is_trusted(user)) return;
  std::erase_if(costs_, [now](const auto& entry) { return entry.second.at(now).count() <= 0; });
  auto& cost = costs_[user];
  cost = {std::max(cost.at(now), Time(0)) + time, now};
}

bool UserCosts::is_too_much(uid_t user, Clock::time_point now) const {
  const auto at = costs_.find(user);
  return at != costs_.end() && at->second.at(now) > most_;
}

// Threads that wait for work together. Any work may hold its thread up for ever, so another thread
// is started where none is free.
struct Crew : std::enable_shared_from_this<Crew> {
  explicit Crew(unsigned most_threads) : most(most_threads) {}
  virtual ~Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] virtual bool has_work() STP_REQUIRES(mutex) = 0;
  // Does what is next, and lets go of the lock meanwhile. Only if has_work().
  virtual void work() STP_REQUIRES(mutex) = 0;

  // Counts a thread that is about to be started, if one is needed.
  bool wants_thread() STP_REQUIRES(mutex) {
    if (free != 0 || threads == most || !has_work()) return false;
    ++threads;
    ++free;
    return true;
  }
  // Call without the lock, after wants_thread().
  void start_thread() {
    try {
      std::thread([self = shared_from_this()] { self->run(); }).detach();
    } catch (const std::system_error&) {  // the existing threads carry on, and tend() tries again
      const Lock guard(mutex);
      --threads;
      --free;
    }
  }
  void tend() {
    {
      const Lock guard(mutex);
      if (!wants_thread()) return;
    }
    start_thread();
  }
  // No thread takes anything more. Waits for those that are not held up.
  void stop(std::chrono::nanoseconds patience) {
    Lock lock(mutex);
    stopping = true;
    given.notify_all();
    const auto end = std::chrono::steady_clock::now() + patience;
    while (threads != 0 && lock.wait_until(done, end)) {
    }
  }

  Mutex mutex;
  std::condition_variable_any given, done;
  const unsigned most;
  unsigned threads STP_GUARDED_BY(mutex) = 0;
  unsigned free STP_GUARDED_BY(mutex) = 0;  // that have no work at present
  bool stopping STP_GUARDED_BY(mutex) = false;

 private:
  void run() {
    Lock lock(mutex);
    for (;;) {
      if (has_work())
        work();
      else if (!stopping)
        lock.wait(given);
      else
        break;
    }
    STP_ASSERT(free > 0 && free <= threads, "a thread that ends was free");
    --free;
    --threads;
    done.notify_all();
  }
};

struct UserWorkers::State : Crew {
  State() : Crew(kThreads + kFirstThreads + kThreadsPerUser) {}

  // The work of one user.
  struct Queue {
    struct Item {
      Work work;
      Kind kind;
    };
    struct Begun {
      Clock::time_point since;
      bool told = false;  // by held_up()
    };
    std::deque<Item> waiting;
    unsigned busy = 0;                                        // threads that work for this user
    std::array<std::optional<Begun>, kThreadsPerUser> begun;  // what these are at
    std::size_t asked = 0;  // that waits or is being done, and is no release
  };
  using Queues = std::map<uid_t, Queue>;
  // Only those with work that waits or is being done.
  Queues queues STP_GUARDED_BY(mutex);
  UserCosts sleeps STP_GUARDED_BY(mutex){kLongSleep, kMostSlept};
  uid_t last_served STP_GUARDED_BY(mutex) = 0;
  unsigned untrusted STP_GUARDED_BY(mutex) = 0;  // threads that work for users who are not trusted

  [[nodiscard]] bool may_work_for(const Queues::value_type& entry) const STP_REQUIRES(mutex) {
    const auto& [user, queue] = entry;
    const auto places = queue.busy == 0 ? kThreads + kFirstThreads : kThreads;
    return !queue.waiting.empty() && queue.busy < kThreadsPerUser &&
           (untrusted < places || ipc::is_trusted(user));
  }
  Queues::iterator next() STP_REQUIRES(mutex) {
    return next_in_turn(queues, last_served, [this](const auto& each) STP_REQUIRES(mutex) {
      return may_work_for(each);
    });
  }
  [[nodiscard]] bool has_work() override STP_REQUIRES(mutex) { return next() != queues.end(); }
  // `at` stays valid while the lock is released: nobody erases a queue with a busy thread.
  void work() override STP_REQUIRES(mutex) {
    const auto at = next();
    auto& queue = at->second;
    const auto counted = ipc::is_trusted(at->first) ? 0U : 1U;
    last_served = at->first;
    auto [item, kind] = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    ++queue.busy;
    auto* const begun = std::find(queue.begun.begin(), queue.begun.end(), std::nullopt);
    STP_ASSERT(begun != queue.begun.end(), "a user has no more threads than that");
    *begun = Queue::Begun{.since = Clock::now()};
    --free;
    untrusted += counted;
    const auto another = wants_thread();  // this one may be held up for long
    mutex.unlock();
    if (another) start_thread();
    os::MappingTurn::time_off() = {};
    const auto waited_before = wait_for_processor();
    item();
    item = nullptr;  // what it holds is released here, too
    const auto off = os::MappingTurn::time_off();
    const auto waited = off < kLongSleep ? waited_before : wait_for_processor();
    mutex.lock();
    // How long the thread has not run in turns, but for its waits for a processor.
    if (waited_before && waited)
      sleeps.took(at->first, off - (*waited - *waited_before), Clock::now());
    STP_ASSERT(queue.busy > 0 && untrusted >= counted, "a thread that worked was counted");
    --queue.busy;
    begun->reset();
    if (kind == Kind::kAsked) --queue.asked;
    ++free;
    untrusted -= counted;
    if (queue.waiting.empty() && queue.busy == 0) queues.erase(at);
  }
};

UserWorkers::UserWorkers() : state_(std::make_shared<State>()) {}

UserWorkers::~UserWorkers() {
  state_->stop(kFarewell);
}

void UserWorkers::give(uid_t user, Work work, Kind kind) {
  bool another = false;
  {
    const Lock guard(state_->mutex);
    auto& queue = state_->queues[user];
    queue.waiting.push_back({std::move(work), kind});
    if (kind == Kind::kAsked) ++queue.asked;
    another = state_->wants_thread();
  }
  state_->given.notify_one();
  if (another) state_->start_thread();
}

std::shared_ptr<void> UserWorkers::guard(std::shared_ptr<UserWorkers> workers, uid_t user,
                                         std::shared_ptr<void> thing) {
  auto* const name = thing.get();
  // Where a request that finds no memory drops it, too, and nothing may be thrown.
  return {name, [workers = std::move(workers), user, thing = std::move(thing)](void*) mutable {
            const Needed to_the_end;
            workers->give(
                user, [thing = std::move(thing)]() mutable { thing.reset(); }, Kind::kRelease);
          }};
}

bool UserWorkers::has_slept(uid_t user, Clock::time_point now) const {
  const Lock guard(state_->mutex);
  return state_->sleeps.is_too_much(user, now);
}

bool UserWorkers::is_stuck(uid_t user, Clock::time_point now) const {
  if (has_slept(user, now)) return true;
  const Lock guard(state_->mutex);
  const auto at = state_->queues.find(user);
  return at != state_->queues.end() && at->second.asked >= kMostPerUser;
}

void UserWorkers::tend() {
  state_->tend();
}

std::optional<uid_t> UserWorkers::held_up(Clock::time_point now) {
  const Lock guard(state_->mutex);
  for (auto& [user, queue] : state_->queues)
    for (auto& begun : queue.begun)
      if (begun && !begun->told && now - begun->since >= kHeldUp) {
        begun->told = true;
        return user;
      }
  return std::nullopt;
}

std::size_t UserWorkers::waiting(uid_t user) const {
  const Lock guard(state_->mutex);
  const auto at = state_->queues.find(user);
  return at == state_->queues.end() ? 0 : at->second.waiting.size() + at->second.busy;
}

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
  std::deque<os::UniqueFd> waiting;
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

struct Closer::State : Crew {
  State() : Crew(kThreads + kFirstThreads) {}

  using Key = std::pair<uid_t, Kind>;
  using Lanes = std::map<Key, Lane>;
  // Only those with a descriptor that waits or is being closed.
  Lanes lanes STP_GUARDED_BY(mutex);
  Key last_served STP_GUARDED_BY(mutex){};
  // Descriptors of all users, including those being closed.
  std::size_t waiting STP_GUARDED_BY(mutex) = 0;
  unsigned busy_for_users STP_GUARDED_BY(mutex) =
      0;  // threads that close for others than operators

  [[nodiscard]] bool may_close_for(const Lanes::value_type& each) const STP_REQUIRES(mutex) {
    const auto& [key, lane] = each;
    constexpr auto kOfUsers = kThreads - kThreadsOfOperators;
    const auto places = lane.busy_count() == 0 ? kOfUsers + kFirstThreads : kOfUsers;
    return !lane.waiting.empty() && lane.free_place() &&
           (ipc::is_trusted(key.first) || busy_for_users < places);
  }
  Lanes::iterator next() STP_REQUIRES(mutex) {
    return next_in_turn(lanes, last_served, [this](const auto& each) STP_REQUIRES(mutex) {
      return may_close_for(each);
    });
  }

  [[nodiscard]] const Lane* lane(uid_t user, Kind kind) const STP_REQUIRES(mutex) {
    const auto at = lanes.find({user, kind});
    return at == lanes.end() ? nullptr : &at->second;
  }

  [[nodiscard]] bool has_work() override STP_REQUIRES(mutex) { return next() != lanes.end(); }
  // `lane` stays valid while the lock is released: nobody erases a lane with a busy thread.
  void work() override STP_REQUIRES(mutex) {
    thread_local Nudge nudge;
    const auto at = next();
    auto& lane = at->second;
    STP_ASSERT(!lane.waiting.empty() && lane.free_place(),
               "the lane that is next has a descriptor, and a place for a thread");
    STP_ASSERT(free > 0, "the thread that closes was free");
    last_served = at->first;
    auto file = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    auto& since = lane.busy[*lane.free_place()];
    since = Clock::now();
    --free;
    const unsigned of_users = ipc::is_trusted(at->first.first) ? 0 : 1;
    busy_for_users += of_users;
    const auto another = wants_thread();  // this thread may block for ever in close()
    mutex.unlock();
    if (another) start_thread();
    {
      Nudge::Span const span(nudge);
      file.reset();
    }
    mutex.lock();
    since.reset();
    ++free;
    busy_for_users -= of_users;
    STP_ASSERT(waiting > 0 && lane.busy_count() < lane.busy.size(),
               "a descriptor that is closed was counted");
    --waiting;
    if (lane.waiting.empty() && lane.busy_count() == 0) lanes.erase(at);
  }
};

Closer::Closer() : state_(std::make_shared<State>()) {}

Closer::~Closer() {
  state_->stop(kFarewell);
}

void Closer::close(uid_t user, os::UniqueFd file, Kind kind) {
  if (!file) return;
  bool more_threads = false;
  {
    const Lock guard(state_->mutex);
    state_->lanes[{user, kind}].waiting.push_back(std::move(file));
    ++state_->waiting;
    more_threads = state_->wants_thread();
  }
  state_->given.notify_one();
  if (more_threads) state_->start_thread();
}

void Closer::tend() {
  state_->tend();
}

void Closer::close(uid_t user, std::vector<os::UniqueFd>& files) {
  for (auto& file : files) close(user, std::move(file));
  files.clear();
}

std::size_t Closer::waiting() const {
  const Lock guard(state_->mutex);
  return state_->waiting;
}

std::size_t Closer::waiting(uid_t user, Kind kind) const {
  const Lock guard(state_->mutex);
  const auto* const lane = state_->lane(user, kind);
  return lane == nullptr ? 0 : lane->waiting.size() + lane->busy_count();
}

std::size_t Closer::lost() const {
  const Lock guard(state_->mutex);
  std::size_t count = 0;
  for (const auto& [key, lane] : state_->lanes) count += lane.lost(Clock::now());
  return count;
}

std::size_t Closer::lost(uid_t user) const {
  const Lock guard(state_->mutex);
  std::size_t count = 0;
  for (const auto kind : {Kind::kFile, Kind::kSocket})
    if (const auto* const lane = state_->lane(user, kind)) count += lane->lost(Clock::now());
  return count;
}

std::optional<uid_t> Closer::who_holds_up() const {
  const Lock guard(state_->mutex);
  for (const auto& [key, lane] : state_->lanes)
    if (lane.lost(Clock::now()) != 0) return key.first;
  return std::nullopt;
}

ForeignFiles::~ForeignFiles() {
  for (auto& [user, sockets] : unread_)
    for (auto& socket : sockets) close_socket(user, std::move(socket));
}

bool ForeignFiles::may_take(uid_t user) const {
  const auto waiting = closer_.waiting();
  return waiting == 0 || (waiting + ipc::kMostFds <= room_ && !is_stuck(user));
}

int ForeignFiles::receive(int socket, uid_t user, ipc::RequestMessage& request,
                          std::vector<os::UniqueFd>& fds) {
  const auto descriptors = may_take(user) ? ipc::Descriptors::kTake : ipc::Descriptors::kRefuse;
  if (descriptors == ipc::Descriptors::kTake && room_ >= ipc::kMostFds)
    return ipc::receive_request(socket, request, fds, ipc::Wait::kDontWait);
  Nudge::Span const span(*nudge_);  // the kernel closes those that it cannot deliver
  return ipc::receive_request(socket, request, fds, ipc::Wait::kDontWait, descriptors);
}

void ForeignFiles::hang_up(uid_t user, os::UniqueFd socket) {
  ::shutdown(socket.get(), SHUT_RDWR);
  close_socket(user, std::move(socket));
}

// One of those who are many because they have many users is closed at once: the kernel keeps its
// reply, but its descriptor is free.
void ForeignFiles::keep_until_read(uid_t user, os::UniqueFd socket) {
  if (unread_count() >= 2 * kMostUnreadOfAll) return close_socket(user, std::move(socket));
  unread_[user].push_back(std::move(socket));
}

std::size_t ForeignFiles::unread_count() const {
  std::size_t all = 0;
  for (const auto& [of, sockets] : unread_) all += sockets.size();
  return all;
}

void ForeignFiles::close_those_read(uid_t user, std::vector<os::UniqueFd>& sockets) {
  std::erase_if(sockets, [&](os::UniqueFd& socket) {
    if (ipc::has_unread_by_peer(socket.get())) return false;
    close_socket(user, std::move(socket));
    return true;
  });
}

bool ForeignFiles::has_too_many_unread(uid_t user, std::size_t most) {
  const auto at = unread_.find(user);
  if (at == unread_.end()) return false;
  const auto all = unread_count();
  if (at->second.size() < most && all < kMostUnreadOfAll) return false;
  close_those_read(user, at->second);
  return at->second.size() >= most || (all >= kMostUnreadOfAll && !at->second.empty());
}

std::optional<ForeignFiles::Lost> ForeignFiles::tend() {
  closer_.tend();
  for (auto& [user, sockets] : unread_) close_those_read(user, sockets);
  std::erase_if(unread_, [](const auto& entry) { return entry.second.empty(); });
  const auto before = std::exchange(lost_, closer_.lost());
  if (lost_ <= before) return std::nullopt;
  return Lost{lost_ - before, closer_.who_holds_up().value_or(0)};
}

}  // namespace stp::stpd
