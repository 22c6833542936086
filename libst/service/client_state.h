// SPDX-License-Identifier: BSD-3-Clause
// What a Service knows about one client. The Service looks up every id of a request here, so a
// client reaches only its own objects.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/bell_credit.h"
#include "libst/service/budget.h"
#include "libst/service/client_page.h"
#include "libst/service/program_use.h"
#include "libst/service/service.h"
#include "stp/channel/layout.h"

namespace stp::service {

// A bell number: the index of a channel in its client's table.
using Bell = std::uint32_t;

struct Channel {
  std::shared_ptr<SharedMemory> memory;
  EndpointId endpoint = kNoneId;
  VcId vc = kNoneId;  // kNoneId: spare, or its connection is not accepted yet
  std::uint32_t slots = 0;
  std::uint32_t rung_head = 0;            // head of the transmit queue at the last ring
  bool closing = false;                   // the client has asked to close it
  std::size_t bytes = 0;                  // memory that it costs the service
  std::unordered_set<std::uint16_t> mxs;  // Mx that only this connection may use
  Reservation place, port, queue;
  Counted one, counted_bytes, counted_slots;

  [[nodiscard]] ChannelControl& control() const {
    return *reinterpret_cast<ChannelControl*>(memory->data());
  }
};

struct Endpoint {
  bool listening = false;
  bool ending = false;                // closed by the client; erased when all its objects have gone
  std::uint32_t unaccepted = 0;       // spare channels, and those of connections not accepted yet
  std::uint32_t channels = 0;         // all channels
  std::uint32_t in_use = 0;           // connections that the client holds and has not closed
  std::uint32_t regions = 0;          // regions that the Node still uses
  std::unordered_set<RegionId> gone;  // regions that the client may still ask about
  Reservation place, tables;
  Counted one, counted_tables;
};

struct Region {
  // kUnbinding: unmapped, but frames may still read the memory. kGone: the Node has forgotten it.
  enum class State { kBound, kUnbinding, kGone };
  State state = State::kBound;
  EndpointId endpoint = kNoneId;
  std::shared_ptr<void> keep;  // keeps the memory mapped until the region has gone
  std::uint64_t mapped_bytes = 0;
  // As in the request.
  Direction direction = Direction::kTransmit;
  std::uint32_t base = 0;
  std::uint64_t bytes = 0;
  std::unordered_set<std::uint16_t> mxs;
  Reservation place;
  Counted one, counted_bytes;
};

// The owners of an Mx: it ends with its region or its connection.
struct MxUse {
  RegionId region = kNoneId;
  VcId vc = kNoneId;  // kNoneId: all connections of the region's endpoint
  Reservation place;
  Counted one;
};

struct Client {
  ClientId id = 0;
  bool privileged = false;
  ClientIdentity identity;
  Account account, ports;  // of the link, and of this shard's Ports
  Reservation place;
  // What the program uses on all shards: its quotas limit this.
  std::shared_ptr<ProgramUse> use = std::make_shared<ProgramUse>();
  bool leaving = false;
  // How far the removal of the client has come.
  Bell next_bell = 0;
  EndpointId next_endpoint = kNoneId;
  RegionId next_region = kNoneId;
  std::shared_ptr<SharedMemory> page_memory;
  // An eventfd that the client writes to wake a sleeping service. The service never reads it,
  // writes it or changes its flags. Empty for a client in this process.
  UniqueFd bell_file;
  BellCredit bell_credit;
  Doorbells::Progress rung;
  std::shared_ptr<Torn> torn = std::make_shared<Torn>(false);

  std::vector<std::unique_ptr<Channel>> channels;  // by bell number
  std::vector<Bell> free_bells;
  std::unordered_map<VcId, Bell> vcs;
  std::map<EndpointId, Endpoint> endpoints;
  std::map<RegionId, Region> regions;
  std::unordered_map<std::uint16_t, MxUse> mxs;

  std::uint64_t channel_bytes = 0, slots = 0, mapped_bytes = 0;
  std::uint64_t table_bytes = 0;  // tables of the Bufx of all its endpoints

  [[nodiscard]] ClientPage& page() const {
    return *reinterpret_cast<ClientPage*>(page_memory->data());
  }
  // nullptr: not an object of this client, or no longer.
  Endpoint* endpoint(EndpointId id_of) {
    const auto at = endpoints.find(id_of);
    return at == endpoints.end() || at->second.ending ? nullptr : &at->second;
  }
  Region* region(RegionId id_of) {
    const auto at = regions.find(id_of);
    return at == regions.end() ? nullptr : &at->second;
  }
  Channel* connection(VcId vc) {
    const auto at = vcs.find(vc);
    return at == vcs.end() ? nullptr : channels[at->second].get();
  }
  [[nodiscard]] std::size_t live_channels() const { return channels.size() - free_bells.size(); }
  [[nodiscard]] bool empty() const {
    return endpoints.empty() && regions.empty() && mxs.empty() && live_channels() == 0;
  }
  [[nodiscard]] Channel* channel(Bell bell) const {
    return bell < channels.size() ? channels[bell].get() : nullptr;
  }
};

// Returns the next unused id after `last`. Objects may have come and gone since.
template <typename Clients>
ClientId next_client_id(ClientId last, const Clients& in_use) {
  do {
    ++last;
  } while (last == 0 || in_use.contains(last));
  return last;
}

}  // namespace stp::service
