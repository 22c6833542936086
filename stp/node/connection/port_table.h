// SPDX-License-Identifier: BSD-3-Clause
// The connections of a Node by their local Ports, and Ports of endpoints without connections. An id
// is a Port and a serial number, so that one that has ended never finds its Port's next connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "stp/base/number_set.h"
#include "stp/node/objects.h"
#include "stp/node/shards.h"

namespace stp {

class PortTable {
 public:
  // `share`: the Ports that it has to give.
  explicit PortTable(PortShare share = {});

  // nullptr: the Port names nothing.
  [[nodiscard]] Vc* at(std::uint16_t port) const {
    return port < places_.size() ? places_[port].get() : nullptr;
  }
  // nullptr: it is over, or never was.
  [[nodiscard]] Vc* find(VcId id) const {
    auto* const vc = at(static_cast<std::uint16_t>(id & wire::kMaxPort));
    return vc != nullptr && vc->id == id ? vc : nullptr;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool full() const { return count_ >= most_; }
  // The one with the lowest Port above `port`; nullptr: there is none.
  [[nodiscard]] Vc* after(std::uint16_t port) const;

  // Ports that the table has places for: a power of two. It grows with the connections.
  [[nodiscard]] std::size_t places() const { return places_.size(); }
  void make_places(std::size_t least);
  // Whether it is one of those that it has to give.
  [[nodiscard]] bool has(std::uint16_t port) const { return share_.has(port); }
  [[nodiscard]] PortShare share() const { return share_; }
  // A user asks for this very Port. False: it is taken, or not to be had here.
  bool is_free(std::uint16_t port);
  // The next free one in turn, so that a Port rests as long as possible before it names another
  // connection, and not one that `is_promised(port)`. 0: none left.
  // protocol: 5.3
  template <typename IsPromised>
  std::uint16_t choose(IsPromised&& is_promised);

  // Gives `vc` its id. Its Port is free.
  Vc& add(std::unique_ptr<Vc> vc);
  // It is over: its Port and its id name it no more.
  std::unique_ptr<Vc> take(Vc& vc);
  // Of one that is over: frames still read its user's memory.
  void keep(std::unique_ptr<Vc> vc);
  // One of them has gone. The connection, where that was the last one.
  std::unique_ptr<Vc> left_behind(VcId id);

 private:
  void grow();
  [[nodiscard]] std::uint32_t next_free(std::uint32_t from) const;

  const PortShare share_;
  const std::size_t most_;
  std::vector<std::unique_ptr<Vc>> places_;
  NumberSet used_;
  NumberSet barred_;  // those, and all that it does not have to give
  std::map<VcId, std::unique_ptr<Vc>> kept_;
  std::size_t count_ = 0;
  std::uint32_t next_port_ = 1;
  std::uint64_t next_serial_ = 1;
};

template <typename IsPromised>
std::uint16_t PortTable::choose(IsPromised&& is_promised) {
  if (full()) return 0;
  grow();
  auto chosen = next_free(next_port_);
  constexpr unsigned kMostSteps = 64;
  for (unsigned i = 0; i < kMostSteps && chosen != 0; ++i) {
    if (!is_promised(static_cast<std::uint16_t>(chosen))) break;
    chosen = next_free(chosen + 1);
  }
  if (chosen == 0) return 0;
  next_port_ = chosen + 1;
  return static_cast<std::uint16_t>(chosen);
}

}  // namespace stp
