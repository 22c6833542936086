// SPDX-License-Identifier: BSD-3-Clause
// The thread that drives a Service when no caller does. In stpd nobody else drives it. Inside a
// program the thread stays away while callers of libst drive the Service, and takes over when they
// stop, so progress never depends on the program's next call. And when such a thread is awake: when
// it polls, and how often it looks for what cannot wake it.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libst/host/service.h"
#include "libst/os/shared_core.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::host {

// Decides whether the background thread stays awake for a program that polls memory and makes no
// calls, as consumers of RDMA writes do. Such a program posts only answers to what it finds. Each
// frame buys a bounded time awake.
class Attention {
 public:
  enum class Rest {
    kYield,  // offer the core to other threads, then poll again
    kNap,    // sleep for kNap
    kSleep   // sleep as usual
  };

  // After a frame or a post the thread stays awake for kAwake if nobody else wants the core, then
  // naps until kNapping has passed.
  static constexpr Time kAwake = 200 * kMicrosecond, kNapping = 20 * kMillisecond;
  static constexpr Time kNap = 20 * kMicrosecond;
  // A program that posts more than kPostsPerFrame times per frame received is a sender: it looks
  // for its frames itself.
  static constexpr std::int64_t kPostsPerFrame = 4, kMostPosts = 64;

  // `may`: the program has called libst and does not sleep in a call, so it may be polling memory.
  void may_spin(bool may) {
    may_ = may;
    if (!may) end();
  }
  [[nodiscard]] bool possible() const { return may_; }
  // `frames`: how many the thread received. `posts`: how often the program has posted since the
  // last call.
  void turn(std::uint64_t frames, std::uint64_t posts, Time now) {
    if (!may_) return;
    on_ |= frames != 0;
    posts_left_ += static_cast<std::int64_t>(frames) * kPostsPerFrame;
    posts_left_ = std::min(posts_left_, kMostPosts) - static_cast<std::int64_t>(posts);
    if (posts_left_ < 0) return end();
    if (on_ && frames + posts != 0) active_ = now;
  }
  // Call after a yield that lasted from `begin` to `now`.
  void yielded(Time begin, Time now) { core_.yielded(begin, now); }
  void end() {
    on_ = false;
    posts_left_ = 0;
  }
  [[nodiscard]] bool on() const { return on_; }
  // What to do after a turn without work.
  [[nodiscard]] Rest rest(Time now) const {
    const auto idle = now - active_;
    if (!on_ || idle >= kNapping) return Rest::kSleep;
    return idle < kAwake && !core_.is_shared(now) ? Rest::kYield : Rest::kNap;
  }

 private:
  bool may_ = false, on_ = false;
  Time active_ = 0;
  os::SharedCore core_;
  std::int64_t posts_left_ = 0;
};

// How long a thread that yields its core in each idle turn polls before it sleeps. Where threads
// share cores, an answer takes as long as all of them need for their turns: two daemons and two
// programs on two cores 30 us and more. A thread that sleeps earlier is late for each answer.
// Where nothing comes soon, sleeping leaves the core to others. And where another thread does not
// give the core back, sleeping is the quicker way to it: the scheduler runs a thread that wakes.
class Patience {
 public:
  static constexpr Time kShortest = 20 * kMicrosecond, kLongest = 200 * kMicrosecond;
  // What comes within that time after the work before may be an answer.
  static constexpr Time kAnswer = 500 * kMicrosecond;
  // Who yields for longer sleeps at once for a while.
  static constexpr os::SharedCoreRule kGivenBackLate{.late_back = 500 * kMicrosecond};

  // Work has come that long after the work before.
  void work_came(Time after) {
    if (after > kAnswer)
      time_ = kShortest;
    else if (after > kShortest)
      time_ = kLongest;
  }
  // Call after a yield that lasted from `begin` to `now`.
  void yielded(Time begin, Time now) { core_.yielded(begin, now); }
  [[nodiscard]] Time time(Time now) const { return core_.is_shared(now) ? 0 : time_; }

 private:
  Time time_ = kShortest;
  os::SharedCore core_{kGivenBackLate};
};

// Limits how often a thread polls for something that cannot wake it, to a small share of a core.
// The cost of a look is mostly the kernel's timer and differs between machines by a factor of ten,
// so the class measures it.
class SleepBudget {
 public:
  // `shortest`, `longest`: bounds of pause(), whatever a look costs.
  SleepBudget(Time shortest, Time longest)
      : shortest_(shortest), longest_(longest), pause_(longest) {}

  // The thread had work: discards the current measurement.
  void restart() { looks_ = 0; }
  // The thread calls this each time it has slept, looked and found nothing.
  void looked() {
    if (looks_ == 0) spent_before_ = spent();
    if (looks_++ < kMeasured) return;
    set_cost((spent() - spent_before_) / kMeasured);
    looks_ = 0;
  }
  void set_cost(Time of_one_look) {
    pause_ = std::clamp(of_one_look * kLooksPerShare, shortest_, longest_);
  }
  [[nodiscard]] Time pause() const { return pause_; }

 private:
  static constexpr unsigned kMeasured = 64;   // looks per measurement: reading CPU time costs, too
  static constexpr Time kLooksPerShare = 60;  // 1/60, or 1.7 %, of a core

  static Time spent() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec);
  }

  const Time shortest_, longest_;
  Time pause_;
  Time spent_before_ = 0;
  unsigned looks_ = 0;
};

// Shows that a thread is alive: the thread beats, another one checks that the count changes.
class Heartbeat {
 public:
  // Call from one thread only: the increment is not atomic.
  void beat() {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> beats_{0};
};

// How the kernel shares a core between this thread and others.
// The kernel's struct sched_attr. Its own header conflicts with the C library's.
struct Scheduling {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice = 0, deadline = 0, period = 0;  // nanoseconds
};

// Settings of a thread, 0: the calling one; nullopt: the kernel does not tell.
std::optional<Scheduling> scheduling(pid_t thread = 0);

// Asks for short time slices, so that the kernel schedules the thread soon on a busy core (Linux
// 6.12). Has no effect on older kernels. Leaves a policy that an operator has chosen as it is.
void ask_for_short_slices(std::uint64_t slice);
// `slice`, in nanoseconds. A yield gives away one slice of the thread that yields. If those of
// other threads are longer, it has to yield again and again until they have had their part. So a
// thread that yields has a longer slice, though a shorter one than programs normally have.
inline constexpr std::uint64_t kShortSlice = 100'000, kSliceToYield = 1'000'000;

enum class PollPolicy {
  kBusy,      // never sleeps: needs a core of its own
  kAdaptive,  // sleeps after being idle for longer than a round trip
  kInterrupt  // sleeps as soon as it is idle
};

// Clients, timers and frames wake a sleeping loop; frames only if the link can do that
// (Port::wakes). Unless they always do, the loop looks for frames at increasing intervals: as often
// as about 2% of a core allow, and at least once per millisecond. Where frames wake nobody,
// kInterrupt behaves as kAdaptive.
class PollLoop {
 public:
  // `cpus`: where the thread may run; empty: wherever the process may. `crowded`: threads of other
  // shards run on the same CPUs, so this one yields its CPU in each idle turn.
  PollLoop(Service& service, PollPolicy policy, std::vector<unsigned> cpus = {},
           bool crowded = false);
  ~PollLoop();
  PollLoop(const PollLoop&) = delete;
  PollLoop& operator=(const PollLoop&) = delete;

  void start();
  void stop();  // waits for the thread; may be called again

  // A caller that drives the Service itself calls this each time, under the drive lock. The loop
  // stays away meanwhile. It returns kHandover after the last visit, or later if visits were
  // frequent. So a program that calls often drives the link alone and need not announce when it
  // stops.
  void visited() {
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // The same, for a caller that only sends. It does not keep the loop away from a program that
  // leaves incoming frames to the loop (Attention).
  void posted() {
    visits_.store(visits_.load(std::memory_order_relaxed) + kPost, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t visits() const { return visits_.load(std::memory_order_relaxed); }

  // For a caller that is about to sleep: the loop takes over at once.
  void take_over();
  // For one that sleeps for a moment: it waits for frames itself, and the loop stays away. A post
  // of another thread, or rouse(), ends the sleep. `rouses`: their number before the caller looked
  // for what it waits for; if there is another one since, it does not sleep. False: a signal
  // handler ran while it slept.
  bool sleep_as_caller(Turn& driving, Time length, std::uint32_t rouses);
  void rouse();
  [[nodiscard]] std::uint32_t rouses() const { return rouses_.load(); }

  // Call without the lock, after ringing a bell: a caller that has visited the Service leaves work
  // to the loop. Unless there is another visit, the loop does the work within a millisecond.
  // Threads that call it at the same time may be counted as one.
  void leave_to_loop() {
    posts_left_.store(posts_left_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (left_.load(std::memory_order_relaxed)) return;
    left_ = true;
    if (far_away_) call();
  }
  // Counts how often the loop has checked whether callers still come.
  [[nodiscard]] std::uint32_t looks() const {
    return looks_around_.load(std::memory_order_relaxed);
  }

  // Beats every turn, and several times a second when asleep.
  [[nodiscard]] const Heartbeat& heartbeat() const { return heartbeat_; }

  static constexpr Time kHandover = 100 * kMicrosecond;
  // The longest time that the loop stays away while work is left to it and callers keep coming.
  static constexpr Time kLongestLeft = 4 * kHandover;

 private:
  void run();
  void settle() const;
  void call();
  [[nodiscard]] bool callers_came() const {
    if (caller_sleeps_.load(std::memory_order_relaxed)) return true;
    const auto visits = visits_.load(std::memory_order_relaxed);
    return attention_.on() ? visits % kPost != seen_visits_ % kPost : visits != seen_visits_;
  }
  void wait_for_callers();
  void drive();
  [[nodiscard]] static std::uint64_t frames(const Turn& driving);
  // All posts so far, modulo 2^32.
  [[nodiscard]] std::uint32_t posts() const {
    return static_cast<std::uint32_t>(visits_.load(std::memory_order_relaxed) / kPost) +
           posts_left_.load(std::memory_order_relaxed);
  }
  bool turn(const Turn& driving);
  void rest(Turn& driving, Time idle_since, Time& interval);
  void yield(Turn& driving);
  [[nodiscard]] bool may_sleep(const Turn& driving, Time idle_since) const;
  Time longest_sleep(const Turn& driving);
  void sleep(Turn& driving, Time interval);

  Service& service_;
  const PollPolicy policy_;
  const std::vector<unsigned> cpus_;
  const int wake_fd_;  // readable when frames have arrived; -1: the driver has no such descriptor
  SleepBudget looks_;  // paces the polling without wake_fd_; used by the thread only
  const bool yields_;  // yields its core in each idle turn
  Patience patience_;  // before it sleeps, where it yields; used by the thread only
  Heartbeat heartbeat_;
  std::atomic<std::uint32_t> looks_around_{0};
  std::thread thread_;
  std::atomic<bool> stopping_{false}, sleeping_{false};
  // Both change under the drive lock.
  std::atomic<bool> drives_{false}, caller_sleeps_{false};
  std::atomic<std::uint32_t> rouses_{0};
  // The lower 32 bits count visited(), the upper 32 posted().
  static constexpr std::uint64_t kPost = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> visits_{0};
  std::atomic<std::uint32_t> posts_left_{0};  // counts leave_to_loop()
  Attention attention_;
  std::uint64_t frames_seen_ = 0;  // at the thread's last turn
  std::uint32_t posts_seen_ = 0;   // likewise
  os::Absence absence_{kHandover};
  // Each side stores one of them and then loads the other, sequentially consistent. So either the
  // loop sees that work is left to it, or the caller sees that the loop is far away and calls it.
  std::atomic<bool> left_{false}, far_away_{false};
  std::uint64_t seen_visits_ = 0;  // used by the thread only: visits that it has reacted to
  Mutex mutex_;
  std::condition_variable_any called_;
  bool taken_over_ STP_GUARDED_BY(mutex_) = false;
};

// Where the polling threads of a link's shards run, and whether each has a CPU of its own.
struct PollPlaces {
  PollPolicy policy = PollPolicy::kAdaptive;
  std::vector<std::vector<unsigned>> cpus;  // for each shard; an empty one: any CPU
  bool crowded = false;                     // there are fewer CPUs than threads
  std::string note;                         // a warning for the operator, if crowded; else ""
};

// `cpus`: the CPUs that the operator has chosen; none: any of the `usable` ones. A single shard may
// use all of them. Of several shards each gets one, in turn. If threads have to share a CPU, kBusy
// becomes kAdaptive: a thread that never sleeps would keep the CPU from another one.
PollPlaces poll_places(PollPolicy policy, unsigned shards, const std::vector<unsigned>& cpus,
                       unsigned usable);

}  // namespace stp::host
