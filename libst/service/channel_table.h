// SPDX-License-Identifier: BSD-3-Clause
// The channels of one client by their bell numbers, and the connections that use them. A bell
// number is free again when its channel is removed; numbers stay small, because the client's page
// has a bit for each.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "libst/service/budget.h"
#include "libst/service/program_use.h"
#include "libst/service/shared_memory.h"
#include "stp/channel/layout.h"
#include "stp/node/node.h"

namespace stp::service {

// The index of a channel in its client's table.
using Bell = std::uint32_t;

struct Channel {
  std::shared_ptr<SharedMemory> memory;
  std::shared_ptr<SharedMemory> offered;  // takes its place when the client has mapped it
  EndpointId endpoint = kNoneId;
  VcId vc = kNoneId;            // kNoneId: spare, or its connection is not accepted yet
  std::uint32_t rung_head = 0;  // head of the transmit queue at the last ring
  bool closing = false;         // the client has asked to close it
  bool to_wake = false;         // a thread that sleeps on it is about to be woken (wakes.h)
  Reservation place, port, queue;
  Counted one, counted_bytes, counted_slots;

  [[nodiscard]] ChannelControl& control() const {
    return *reinterpret_cast<ChannelControl*>(memory->data());
  }
};

class ChannelTable {
 public:
  // Gives the channel a bell number. An exception (no memory) changes nothing.
  Bell add(std::unique_ptr<Channel> channel);
  // Call when no connection uses the channel. Cannot fail.
  std::unique_ptr<Channel> remove(Bell number);
  // From now on the connection uses the channel: it is accepted, or the client has begun it.
  void put_to_use(VcId vc, Bell number);
  // The connection has ended.
  void end_use(VcId vc);

  // nullptr: no channel has this number.
  [[nodiscard]] Channel* at(Bell number) const {
    return number < channels_.size() ? channels_[number].get() : nullptr;
  }
  // nullptr: the client has no such connection.
  [[nodiscard]] Channel* of(VcId vc) const {
    const auto found = in_use_.find(vc);
    return found == in_use_.end() ? nullptr : channels_[found->second].get();
  }
  // All numbers are below this one.
  [[nodiscard]] std::uint32_t numbers() const {
    return static_cast<std::uint32_t>(channels_.size());
  }
  [[nodiscard]] std::size_t count() const { return channels_.size() - free_.size(); }

 private:
  std::vector<std::unique_ptr<Channel>> channels_;  // by bell number
  std::vector<Bell> free_;
  std::unordered_map<VcId, Bell> in_use_;
};

}  // namespace stp::service
