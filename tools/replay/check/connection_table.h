// SPDX-License-Identifier: BSD-3-Clause
// All connections of a trace for which frames may still arrive.
#pragma once

#include <functional>
#include <list>
#include <unordered_map>

#include "tools/replay/check/connection.h"

namespace stp::replay {

// One end: a station and its Port.
struct EndName {
  std::uint64_t mac = 0;
  std::uint16_t port = 0;
  friend auto operator<=>(const EndName&, const EndName&) = default;
};
struct EndHash {
  std::size_t operator()(const EndName& end) const {
    return std::hash<std::uint64_t>()((end.mac << 16 ^ end.port) * 0x9e3779b97f4a7c15);
  }
};

inline EndName end_of(const Side& side) {
  return {side.mac.to_u64(), side.port};
}
// The side of a connection that has this end, and the other.
inline Side& side_at(Connection& c, const EndName& end) {
  return c.sides[end_of(c.sides[0]) == end ? 0 : 1];
}
inline const Side& side_at(const Connection& c, const EndName& end) {
  return c.sides[end_of(c.sides[0]) == end ? 0 : 1];
}
inline const Side& peer_of(const Connection& c, const EndName& end) {
  return c.sides[end_of(c.sides[0]) == end ? 1 : 0];
}

class ConnectionTable {
 public:
  // Called with each connection that is forgotten.
  using Farewell = std::function<void(Connection&)>;
  explicit ConnectionTable(Farewell farewell) : farewell_(std::move(farewell)) {}

  // The connection between two ends in either order, or nullptr.
  Connection* find(const EndName& a, const EndName& b);
  // The newest connection with this end, or nullptr.
  Connection* of_end(const EndName& end);
  Connection& add(Connection connection);
  // A frame of the connection was seen at `now`. Removes connections that have been silent for too
  // long.
  void touch(Connection& connection, TraceTime now);
  void remove(Connection& connection);
  void clear();  // calls the Farewell for all connections
  // Whether connections have been dropped to make room for others.
  [[nodiscard]] bool forgot() const { return forgot_; }

 private:
  struct Place;
  using List = std::list<Place>;
  struct Place : Connection {
    TraceTime touched = kNotYet;
    List::iterator self;
  };
  struct Pair {
    EndName low, high;
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  struct PairHash {
    std::size_t operator()(const Pair& pair) const {
      return EndHash()(pair.low) * 31 + EndHash()(pair.high);
    }
  };
  static Pair pair_of(const EndName& a, const EndName& b);
  void forget(List& list, List::iterator place);
  void forget_oldest(List& list) { forget(list, list.begin()); }
  List& list_of(const Connection& connection) { return connection.ending ? ending_ : live_; }

  Farewell farewell_;
  bool forgot_ = false;
  List live_, ending_;  // the least recently used first
  std::unordered_map<Pair, Place*, PairHash> by_pair_;
  std::unordered_map<EndName, Place*, EndHash> by_end_;
};

}  // namespace stp::replay
