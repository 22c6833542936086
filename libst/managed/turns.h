// SPDX-License-Identifier: BSD-3-Clause
// The progress of a domain: which connections a turn visits, and who takes the turns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <thread>
#include <vector>

#include "libst/client/backend.h"
#include "libst/ipc/client_page.h"
#include "libst/os/shared_core.h"
#include "stp/base/mutex.h"
#include "stp/base/timer_heap.h"

namespace stp::managed {

class Connection;

// Selects the connections that a turn of their domain visits: those with news from the Node, those
// whose timer has expired, and those that asked for another visit. The cost of a turn does not
// depend on the number of other connections. Everything happens under the domain's mutex.
class Agenda {
 public:
  // The state that the Agenda keeps per connection.
  struct Entry {
    Connection* connection = nullptr;
    std::uint32_t channel = 0;
    std::uint32_t timer = 0;  // its number among the timers, while it is known
    std::uint32_t place = 0;  // index among the domain's connections
    bool in_turn = false, again = false, parked = false;
    bool unsent = false;  // has something to send
  };

  // The next turn visits the connection.
  void add(Entry& entry, Connection& connection, std::uint32_t channel);
  void remove(Entry& entry);
  // The connection has another channel now; it has disowned the one before.
  void take_channel(Entry& entry, std::uint32_t channel);
  // The connection has closed its channel or is about to. The link may give the number to another
  // connection soon, so news collected for it are rung again for the new owner.
  void disown(Entry& entry, ipc::Doorbells& news);
  [[nodiscard]] static bool knows(const Entry& entry) { return entry.connection != nullptr; }

  // Collects the connections to visit. turn() has them until end_turn().
  void gather(ipc::Doorbells& news, Time now);
  void visit(Entry& entry);
  [[nodiscard]] const std::vector<Entry*>& turn() const { return turn_; }
  void end_turn();

  void again(Entry& entry);
  // The connection waits for something that this side frees: places in a queue, receives of a pool.
  void park(Entry& entry);
  [[nodiscard]] bool has_parked() const { return !parked_.empty(); }
  void call_parked();
  // Moving a deadline to later does not change the heap until the earlier one has passed, and that
  // causes no visit: most deadlines are of operations that complete long before.
  void expect(const Entry& entry, Time deadline) {
    timed_[entry.timer].due = deadline;
    if (deadline != kNever && deadline < timers_.of(entry.timer))
      timers_.set(entry.timer, deadline);
  }
  // What expect() was told last, unless that time has passed.
  [[nodiscard]] Time due(const Entry& entry) const {
    return knows(entry) ? timed_[entry.timer].due : kNever;
  }
  [[nodiscard]] Time next_deadline() const { return timers_.next(); }

 private:
  // What a timer that has run out needs: mostly it finds a later deadline or none, and the memory
  // of the connection is not touched.
  struct Timed {
    Entry* entry = nullptr;
    Time due = kNever;  // the current deadline; the timer may be earlier
  };

  void forget_channel(const Entry& entry);

  std::vector<Entry*> by_channel_;
  std::vector<std::uint64_t> own_;  // bit per channel: domains of one link share its page
  std::vector<Entry*> turn_, again_, parked_;
  DeadlineHeap timers_;
  std::vector<Timed> timed_;                // by number
  std::vector<std::uint32_t> free_timers_;  // numbers
};

// Owns the background thread of a domain. It promises that somebody makes progress: the thread does
// it while no thread of the program does, and stays away from programs that poll in a loop or wait,
// because each of its turns takes the core from them.
class Background {
 public:
  // The longest sleep of the thread.
  static constexpr Time kLongestSleep = 100 * kMillisecond;

  explicit Background(client::Backend& backend) : backend_(backend) {}

  // `turn` makes progress. It returns when the next one is due at the latest; 0: at once.
  void start(std::function<Time()> turn);
  // Ends the thread after its present turn.
  void stop();

  // A call of the program has made progress. The caller has the domain's mutex.
  void visited() {
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // A call that stays for a while, and makes all progress meanwhile.
  class Visit {
   public:
    explicit Visit(Background& background) : background_(background) {
      background_.visitors_.fetch_add(1);
    }
    ~Visit() { background_.leave(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    Background& background_;
  };
  // The program makes no progress for a while: the thread continues now.
  void take_over();

 private:
  // The thread comes back this long after the last caller has gone, unless it is called: so
  // programs that poll in a loop keep the domain to themselves.
  static constexpr Time kHandover = 200 * kMicrosecond;

  void run();
  void leave();
  bool stay_away(bool visited);
  [[nodiscard]] std::atomic<std::uint32_t>& events_word() const { return backend_.page().events; }
  void sleep_until(std::uint32_t seen, Time deadline);

  client::Backend& backend_;
  std::function<Time()> turn_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> visits_{0}, visitors_{0};
  std::atomic<bool> far_away_{false};  // until a visitor leaves
  os::Absence absence_{kHandover};
  Mutex mutex_;
  std::condition_variable_any called_;
  bool taken_over_ STP_GUARDED_BY(mutex_) = false;
};

}  // namespace stp::managed
