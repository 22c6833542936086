// SPDX-License-Identifier: BSD-3-Clause
// Several Nodes (shards) behind one address. A peer sees one station. Records which shard owns each
// Port and each listener, and so which shard an arriving frame belongs to. Shard i gives out the
// Ports that are i modulo the number of shards, so the D_Port of a frame names its shard. A
// Request_Connection names no Port but a listener, and goes to the shard of that listener.
//
// Thread-safe. A lock guards the listeners; only Request_Connection frames take it.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "stp/base/mutex.h"
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

  // `count`: 1 to kMost.
  explicit Shards(unsigned count);

  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] PortShare share(unsigned shard) const { return {count_, shard}; }
  [[nodiscard]] unsigned owner_of(std::uint16_t port) const { return port % count_; }

  // False: another listener has this UPort. After unlisten() the UPort still names its shard until
  // another shard listens there, so that repeated requests find their answer.
  bool listen(std::uint32_t uport, unsigned shard);
  void unlisten(std::uint32_t uport, unsigned shard);
  // nullopt: no listener is known, present or past.
  [[nodiscard]] std::optional<unsigned> listener(std::uint32_t uport) const;

  // The shard of the frame that begins with `head`, if `head` contains the whole Schedule Header
  // and names a shard; otherwise `here`, the shard that has the frame.
  [[nodiscard]] unsigned owner_of(Bytes head, unsigned here) const;

  // The D_Port of that frame; 0: it names none, or is not STP.
  [[nodiscard]] static std::uint16_t port_of(Bytes head);

  // Past listeners remembered at most.
  static constexpr std::size_t kRemembered = 1'024;

 private:
  struct Place {
    unsigned shard;
    bool listens;
  };

  const unsigned count_;
  mutable Mutex mutex_;
  std::map<std::uint32_t, Place> listeners_ STP_GUARDED_BY(mutex_);
  std::deque<std::uint32_t> gone_ STP_GUARDED_BY(mutex_);  // oldest first; some may listen again
};

}  // namespace stp
