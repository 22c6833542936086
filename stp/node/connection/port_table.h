// SPDX-License-Identifier: BSD-3-Clause
// The connections of a Node by local Port, and the Ports of connectionless endpoints. An id is a
// Port and a serial number, so the id of an ended connection never finds the next one on its Port.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "stp/base/id_table.h"
#include "stp/node/objects.h"
#include "stp/node/shards.h"

namespace stp {

class PortTable {
 public:
  // `share`: the Ports it may give out.
  explicit PortTable(PortShare share = {});

  // nullptr: the Port is unused.
  [[nodiscard]] Vc* at(std::uint16_t port) const {
    return port < places_.size() ? places_[port].get() : nullptr;
  }
  // nullptr: ended, or never existed.
  [[nodiscard]] Vc* find(VcId id) const {
    auto* const vc = at(static_cast<std::uint16_t>(id & wire::kMaxPort));
    return vc != nullptr && vc->id == id ? vc : nullptr;
  }
  // Brings what a Put uses of it into the caches, of whichever connection has its Port.
  void fetch_ahead(VcId id) const;
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool full() const { return count_ >= most_; }
  // The connection with the lowest Port above `port`; nullptr: none.
  [[nodiscard]] Vc* after(std::uint16_t port) const;

  // The number of Ports that fit the table: a power of two. It grows with the connections.
  [[nodiscard]] std::size_t places() const { return places_.size(); }
  void make_places(std::size_t least);
  // Whether `port` belongs to this table's share.
  [[nodiscard]] bool has(std::uint16_t port) const { return share_.has(port); }
  [[nodiscard]] PortShare share() const { return share_; }
  // Whether a user may have this Port. False: taken, or not in the share.
  bool is_free(std::uint16_t port);
  // The next free Port in turn, so that a Port rests as long as possible before it is used again.
  // Skips Ports for which `is_promised(port)`, for a limited number of steps. 0: none left.
  // protocol: 5.3
  template <typename IsPromised>
  std::uint16_t choose(IsPromised&& is_promised);

  // Gives `vc` its id. Its Port must be free.
  Vc& add(std::unique_ptr<Vc> vc);
  // Removes an ended connection: its Port and id no longer find it.
  std::unique_ptr<Vc> take(Vc& vc);
  // Keeps an ended connection while frames still read its user's memory.
  void keep(std::unique_ptr<Vc> vc);
  // One such frame has left. Returns the connection if it was the last one.
  std::unique_ptr<Vc> left_behind(VcId id, std::uint32_t frames = 1);

 private:
  void grow();
  [[nodiscard]] std::uint32_t next_free(std::uint32_t from) const;

  const PortShare share_;
  const std::size_t most_;
  std::vector<std::unique_ptr<Vc>> places_;
  NumberSet used_;
  NumberSet barred_;  // `used_`, and all Ports outside the share
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
