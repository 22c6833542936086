// SPDX-License-Identifier: BSD-3-Clause
// Several Nodes behind one address: who has which Port, who listens where, and so whose a frame is
// that arrives. A peer sees one station. Each Node is a shard: Node i gives out the Ports that are
// i modulo their number, so that a frame says by its D_Port whose it is. A Request_Connection names
// no Port, but a listener, and goes to the Node where that one listens.
//
// Any thread may ask. Listeners are behind a lock, which no other frame takes but a
// Request_Connection.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "stp/types.h"

namespace stp {

// The Ports of one Node: those that are `index` modulo `count`.
struct PortShare {
  unsigned count = 1;
  unsigned index = 0;

  [[nodiscard]] bool has(std::uint16_t port) const { return port % count == index; }
};

class Shards {
 public:
  static constexpr unsigned kMost = 16;

  // 1 to kMost.
  explicit Shards(unsigned count);

  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] PortShare share(unsigned shard) const { return {count_, shard}; }
  [[nodiscard]] unsigned owner_of(std::uint16_t port) const { return port % count_; }

  // False: somebody listens there. What a listener has answered belongs to its shard also after it
  // has gone, until another one listens there: requests that come again find their answer.
  bool listen(std::uint32_t uport, unsigned shard);
  void unlisten(std::uint32_t uport, unsigned shard);
  // nullopt: nobody has listened there, as far as is remembered.
  [[nodiscard]] std::optional<unsigned> listener(std::uint32_t uport) const;

  // Whose the frame is that begins with `head`, which reaches to the end of its Schedule Header at
  // least; else, and where it names nobody, it is for who has it, `here`, to judge.
  [[nodiscard]] unsigned owner_of(Bytes head, unsigned here) const;

  // So many that have gone are remembered.
  static constexpr std::size_t kRemembered = 1'024;

 private:
  struct Place {
    unsigned shard;
    bool listens;
  };

  const unsigned count_;
  mutable std::mutex mutex_;  // of what follows
  std::map<std::uint32_t, Place> listeners_;
  std::deque<std::uint32_t> gone_;  // the oldest first; some of them listen again
};

}  // namespace stp
