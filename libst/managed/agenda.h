// SPDX-License-Identifier: BSD-3-Clause
// Which connections a turn of their domain visits: those with news from the Node, those whose timer
// is due, and those that asked to be looked at again. What a turn costs does not grow with the
// others. All under the domain's mutex.
#pragma once

#include <vector>

#include "libst/service/client_page.h"
#include "stp/base/timer_heap.h"

namespace stp::managed {

class Connection;

class Agenda {
 public:
  // A connection's part of it.
  struct Entry : TimerNode {
    Connection* connection = nullptr;
    std::uint32_t channel = 0;
    std::size_t place = 0;  // among the domain's connections
    bool in_turn = false, again = false, parked = false;
    bool unsent = false;  // has something to send
    Time due = kNever;    // its deadline as it is now; `deadline` may be an earlier one
  };

  // Is visited by the next turn.
  void add(Entry& entry, Connection& connection, std::uint32_t channel);
  void remove(Entry& entry);
  // Its channel is closed, or about to be: its number is another's as soon as the link says so, and
  // so are the news. Those that were taken for this one's are passed on.
  void disown(Entry& entry, service::Doorbells& news);
  [[nodiscard]] static bool knows(const Entry& entry) { return entry.connection != nullptr; }

  // Whom this turn visits, until end_turn().
  void gather(service::Doorbells& news, Time now);
  void visit(Entry& entry);
  [[nodiscard]] const std::vector<Entry*>& turn() const { return turn_; }
  void end_turn();

  void again(Entry& entry);
  // Waits for what this side frees: places in a queue, receives of a pool.
  void park(Entry& entry);
  [[nodiscard]] bool has_parked() const { return !parked_.empty(); }
  void call_parked();
  // A deadline that moves to later leaves the heap alone until the earlier one has passed, and
  // brings no visit then: most are of what is answered long before.
  void expect(Entry& entry, Time deadline) {
    entry.due = deadline;
    if (deadline < entry.deadline) timers_.set(entry, deadline);
  }
  [[nodiscard]] Time next_deadline() const { return timers_.next(); }

 private:
  void forget_channel(const Entry& entry);

  std::vector<Entry*> by_channel_;
  std::vector<std::uint64_t> own_;  // a bit for each of them: domains of one link share its page
  std::vector<Entry*> turn_, again_, parked_;
  TimerHeap timers_;
};

}  // namespace stp::managed
