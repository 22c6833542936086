// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/poll_loop.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "dpdk_port/link/cpus.h"
#include "dpdk_port/link/start_thread.h"

namespace stp::host {

std::optional<Scheduling> scheduling(pid_t thread) {
  Scheduling found;
  if (::syscall(SYS_sched_getattr, thread, &found, sizeof found, 0) != 0) return std::nullopt;
  return found;
}

void ask_for_short_slices(std::uint64_t slice) {
  auto wanted = scheduling();
  if (!wanted || wanted->policy != SCHED_OTHER) return;
  wanted->slice = slice;
  ::syscall(SYS_sched_setattr, 0, &*wanted, 0);
}

namespace {

// Idle this long before the first sleep: longer than a round trip on a local link.
constexpr Time kSpin = 50 * kMicrosecond;
// The loop polls at increasing intervals: to send frames that the link had no room for, and to find
// received frames if the driver cannot signal them.
constexpr Time kFirstSleep = 50 * kMicrosecond;
constexpr Time kLongestSleep = kMillisecond, kLongestWakeableSleep = 100 * kMillisecond;
// With fewer cores than this, spinning takes the CPU from the very programs it serves.
constexpr unsigned kCoresToSpin = 4;

// False: a signal handler ran.
bool wait_for(int fd, Time length) {
  const timespec timeout{.tv_sec = static_cast<time_t>(length / kSecond),
                         .tv_nsec = static_cast<long>(length % kSecond)};
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  return ::ppoll(&readable, 1, &timeout, nullptr) >= 0 || errno != EINTR;
}

}  // namespace

PollLoop::PollLoop(Service& service, PollPolicy policy, std::vector<unsigned> cpus, bool crowded)
    : service_(service),
      policy_(policy),
      cpus_(std::move(cpus)),
      wake_fd_(service.drive()->port().wake_fd()),
      looks_(kFirstSleep, kLongestSleep),
      yields_(crowded ||
              (policy != PollPolicy::kBusy && std::thread::hardware_concurrency() < kCoresToSpin)) {
}

PollLoop::~PollLoop() {
  stop();
}

void PollLoop::start() {
  stopping_ = false;
  thread_ = start_thread([this] { run(); });
}

void PollLoop::stop() {
  {
    const Lock guard(mutex_);
    stopping_ = true;
  }
  called_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PollLoop::take_over() {
  {
    const Lock guard(mutex_);
    taken_over_ = true;
  }
  called_.notify_all();
  if (!sleeping_) return;
  std::uint64_t const one = 1;
  // A full counter also makes the bell readable.
  [[maybe_unused]] const auto put = ::write(service_.bell(), &one, sizeof one);
}

bool PollLoop::sleep_as_caller(Turn& driving, Time length, std::uint32_t rouses) {
  const auto deadline = driving->next_deadline();
  const auto now = port::now();
  if (deadline <= now) return true;
  length = std::min(length, deadline - now);
  bool uninterrupted = true;
  // One thread alone hears the bells. This one looks again soon: the other may have gone. And so
  // does one that a frame may not wake.
  const bool beside = drives_ || caller_sleeps_;
  if (beside || driving->port().wakes() != port::Port::Wakes::kAlways)
    length = std::min(length, kHandover);
  if (beside) {
    driving.pause([&] { uninterrupted = wait_for(wake_fd_, length); });
    return uninterrupted;
  }
  if (!driving->prepare_to_sleep()) return true;
  // Sequentially consistent on both sides: this thread sees the number, or is seen to sleep.
  caller_sleeps_ = true;
  if (rouses_.load() == rouses)
    driving.pause([&] { uninterrupted = service_.sleep(wake_fd_, length); });
  caller_sleeps_ = false;
  driving->woke_up();
  return uninterrupted;
}

void PollLoop::rouse() {
  rouses_.fetch_add(1);
  if (caller_sleeps_) ::eventfd_write(service_.bell(), 1);
}

void PollLoop::settle() const {
  // The kernel may prolong sleeps by this much; its default (50 us) would double the short ones.
  ::prctl(PR_SET_TIMERSLACK, kMicrosecond);
  ask_for_short_slices(yields_ ? kSliceToYield : kShortSlice);
  if (cpus_.empty()) return;
  // Ignores errors: a CPU may have been taken offline, and running elsewhere is better than
  // failing.
  port::stay_on_cpus(cpus_);
}

void PollLoop::run() {
  settle();
  seen_visits_ = visits_;
  while (!stopping_) {
    heartbeat_.beat();
    looks_around_.fetch_add(1, std::memory_order_relaxed);
    if (callers_came())
      wait_for_callers();
    else
      drive();
  }
}

void PollLoop::wait_for_callers() {
  seen_visits_ = visits_;
  auto time = absence_.prolong();
  if (left_.exchange(false)) time = std::min(time, kLongestLeft);
  far_away_ = time > kLongestLeft;
  Lock guard(mutex_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(time);
  while (!taken_over_ && !stopping_ && !(far_away_ && left_))
    if (!guard.wait_until(called_, end)) break;
  far_away_ = false;
  if (taken_over_) seen_visits_ = visits_;
  attention_.may_spin(!taken_over_);
  taken_over_ = false;
}

void PollLoop::call() {
  { const Lock guard(mutex_); }  // the loop waits now, or will still check left_
  called_.notify_all();
}

void PollLoop::drive() {
  absence_.end(attention_.on());
  auto driving = service_.drive();
  drives_ = true;
  frames_seen_ = frames(driving);
  posts_seen_ = posts();
  auto idle_since = port::now();
  auto interval = kFirstSleep;
  while (!stopping_ && !callers_came()) {
    heartbeat_.beat();
    if (turn(driving)) {
      const auto now = port::now();
      patience_.work_came(now - idle_since);
      idle_since = now;
      interval = kFirstSleep;
      looks_.restart();
    } else {
      rest(driving, idle_since, interval);
    }
    driving.give_way();
  }
  drives_ = false;
}

std::uint64_t PollLoop::frames(const Turn& driving) {
  return driving->node().counters().get(Counter::kRxFrames);
}

// Returns true if something moved.
bool PollLoop::turn(const Turn& driving) {
  const auto moved = driving->poll() != 0;
  if (!attention_.possible()) return moved;
  const auto came = frames(driving) - frames_seen_;
  const auto posted = posts() - posts_seen_;
  if (came != 0 || posted != 0) attention_.turn(came, posted, port::now());
  frames_seen_ += came;
  posts_seen_ += posted;
  return moved;
}

void PollLoop::rest(Turn& driving, Time idle_since, Time& interval) {
  const auto rest = attention_.on() ? attention_.rest(port::now()) : Attention::Rest::kSleep;
  if (rest == Attention::Rest::kYield) return yield(driving);
  if (rest == Attention::Rest::kNap && driving->port().wakes() != port::Port::Wakes::kAlways) {
    driving.pause([] { std::this_thread::sleep_for(std::chrono::nanoseconds(Attention::kNap)); });
  } else if (may_sleep(driving, idle_since)) {
    sleep(driving, interval);
    interval = std::min(interval * 2, longest_sleep(driving));
  } else if (yields_) {
    yield(driving);
  }
}

void PollLoop::yield(Turn& driving) {
  driving.pause([this] {
    const auto begin = port::now();
    ::sched_yield();
    const auto end = port::now();
    attention_.yielded(begin, end);
    patience_.yielded(begin, end);
  });
}

bool PollLoop::may_sleep(const Turn& driving, Time idle_since) const {
  if (policy_ == PollPolicy::kBusy) return false;
  if (policy_ == PollPolicy::kInterrupt && driving->port().wakes() != port::Port::Wakes::kNever)
    return true;
  const auto now = port::now();
  const auto patience = attention_.on() ? Patience::kShortest : patience_.time(now);
  return now - idle_since >= (yields_ ? patience : kSpin);
}

Time PollLoop::longest_sleep(const Turn& driving) {
  auto& port = driving->port();
  const bool gone = port.state() == port::LinkState::kGone;  // no frames will arrive
  if (port.wakes() == port::Port::Wakes::kAlways || gone) return kLongestWakeableSleep;
  looks_.looked();
  return looks_.pause();
}

void PollLoop::sleep(Turn& driving, Time interval) {
  const auto deadline = driving->next_deadline();
  const auto now = port::now();
  if (deadline <= now || !driving->prepare_to_sleep()) return;
  sleeping_ = true;  // before another thread can have the lock, add a timer and call take_over()
  driving.pause([&] {
    service_.sleep(wake_fd_, std::min(interval, deadline - now));
    sleeping_ = false;
  });
  driving->woke_up();
}

namespace {

std::string note(unsigned shards, std::size_t count, bool busy) {
  return std::to_string(shards) + " shards share " + std::to_string(count) +
         (count == 1 ? " CPU" : " CPUs") + ": their threads take turns" +
         (busy ? ", and poll=busy behaves as adaptive" : "") +
         "; set a smaller queues=, or give stpd more CPUs (--cpus)";
}

}  // namespace

PollPlaces poll_places(PollPolicy policy, unsigned shards, const std::vector<unsigned>& cpus,
                       unsigned usable) {
  PollPlaces places{.policy = policy, .cpus = {}, .crowded = false, .note = {}};
  if (shards == 1) {
    places.cpus.push_back(cpus);
    return places;
  }
  for (unsigned shard = 0; shard < shards; ++shard) {
    auto& own = places.cpus.emplace_back();
    if (!cpus.empty()) own.push_back(cpus[shard % cpus.size()]);
  }
  const std::size_t count = cpus.empty() ? usable : cpus.size();
  places.crowded = shards > count;
  if (!places.crowded) return places;
  const bool busy = policy == PollPolicy::kBusy;
  if (busy) places.policy = PollPolicy::kAdaptive;
  places.note = note(shards, count, busy);
  return places;
}

}  // namespace stp::host
