// SPDX-License-Identifier: BSD-3-Clause
// Selects the connections that a turn of their domain visits: those with news from the Node, those
// whose timer has expired, and those that asked for another visit. The cost of a turn does not
// depend on the number of other connections. Everything happens under the domain's mutex.
#pragma once

#include <vector>

#include "libst/service/client_page.h"
#include "stp/base/timer_heap.h"

namespace stp::managed {

class Connection;

class Agenda {
 public:
  // The state that the Agenda keeps per connection.
  struct Entry : TimerNode {
    Connection* connection = nullptr;
    std::uint32_t channel = 0;
    std::size_t place = 0;  // index among the domain's connections
    bool in_turn = false, again = false, parked = false;
    bool unsent = false;  // has something to send
    Time due = kNever;    // the current deadline; `deadline` may be earlier
  };

  // The next turn visits the connection.
  void add(Entry& entry, Connection& connection, std::uint32_t channel);
  void remove(Entry& entry);
  // The connection has closed its channel or is about to. The link may give the number to another
  // connection soon, so news collected for it are rung again for the new owner.
  void disown(Entry& entry, service::Doorbells& news);
  [[nodiscard]] static bool knows(const Entry& entry) { return entry.connection != nullptr; }

  // Collects the connections to visit. turn() has them until end_turn().
  void gather(service::Doorbells& news, Time now);
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
  void expect(Entry& entry, Time deadline) {
    entry.due = deadline;
    if (deadline < entry.deadline) timers_.set(entry, deadline);
  }
  [[nodiscard]] Time next_deadline() const { return timers_.next(); }

 private:
  void forget_channel(const Entry& entry);

  std::vector<Entry*> by_channel_;
  std::vector<std::uint64_t> own_;  // bit per channel: domains of one link share its page
  std::vector<Entry*> turn_, again_, parked_;
  TimerHeap timers_;
};

}  // namespace stp::managed
