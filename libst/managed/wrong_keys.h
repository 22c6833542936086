// SPDX-License-Identifier: BSD-3-Clause
// Requests of peers for regions whose keys are wrong: none has that key, or not for that
// connection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stp/transfer/sequencer.h"
#include "stp/types.h"

namespace stp::managed {

class Connection;

// Keys have 32 bits, so a peer that may try a hundred thousand a second finds one of a thousand
// regions within a minute. Peers that keep to their keys name a wrong one only when a region has
// been closed. So a domain refuses some of them at once, and then so many a second, whichever
// connections they come on. Until then, the next requests of that connection wait behind, and
// nobody looks at their keys: else who gets an answer would know that a key is right. No refusal
// waits longer than a second, so there may be one more a second for each connection.
// Under the domain's mutex.
class WrongKeys {
 public:
  static constexpr unsigned kASecond = 256, kAtOnce = 1024;
  static constexpr Time kLongest = kSecond;
  // Requests that wait on a connection; a peer of this library has no more regions.
  static constexpr std::size_t kMost = 64;
  using Requests = std::vector<Completion>;

  // When the next wrong key may be told of: now, or later.
  Time next(Time now) {
    constexpr auto kEach = kSecond / kASecond, kAhead = kEach * kAtOnce;
    told_ = std::min(std::max(told_, now) + kEach, now + kAhead + kLongest);
    return told_ <= now + kAhead ? now : told_ - kAhead;
  }
  // The request is refused at `then`.
  void hold(Connection& connection, const Completion& request, Time then) {
    held_[&connection] = {then, {request}};
    times_.emplace(then, &connection);
  }
  // Requests of the connection wait.
  [[nodiscard]] bool holds(const Connection& connection) const {
    return !held_.empty() && held_.contains(const_cast<Connection*>(&connection));
  }
  // One more waits behind them. False: they are too many.
  [[nodiscard]] bool add(Connection& connection, const Completion& request) {
    auto& requests = held_[&connection].requests;
    if (requests.size() == kMost) return false;
    requests.push_back(request);
    return true;
  }
  [[nodiscard]] Time next_deadline() const {
    return times_.empty() ? kNever : times_.begin()->first;
  }
  // A connection whose first request is to be refused by now, which waits no more with those behind
  // it; nullptr: there is none.
  Connection* take(Time now, Requests& out) {
    if (next_deadline() > now) return nullptr;
    auto* const connection = times_.begin()->second;
    out = std::move(held_[connection].requests);
    forget(*connection);
    return connection;
  }
  void forget(Connection& connection) {
    const auto found = held_.find(&connection);
    if (found == held_.end()) return;
    times_.erase({found->second.then, &connection});
    held_.erase(found);
  }

 private:
  struct Held {
    Time then = 0;
    Requests requests;
  };
  Time told_ = 0;
  std::map<Connection*, Held> held_;
  std::set<std::pair<Time, Connection*>> times_;
};

}  // namespace stp::managed
