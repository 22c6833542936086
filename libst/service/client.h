// SPDX-License-Identifier: BSD-3-Clause
// What a Service knows about one client. The Service looks up every id of a request here, so a
// client reaches only its own objects.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_set>

#include "libst/os/unique_fd.h"
#include "libst/service/allowances.h"
#include "libst/service/bell_credit.h"
#include "libst/service/channel_table.h"
#include "libst/service/client_page.h"
#include "libst/service/identity.h"
#include "libst/service/memory_guard.h"
#include "libst/service/mx_records.h"
#include "libst/service/program_use.h"
#include "stp/base/state_machine.h"

namespace stp::service {

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

//   bound ──unmap──► unbinding ──gone──► gone
//
// unbinding: frames may still read the memory. gone: the Node has forgotten the region; the client
// may still ask about it.
enum class RegionState { kBound, kUnbinding, kGone };
enum class RegionEvent { kUnmap, kGone };
inline constexpr Transition<RegionState, RegionEvent> kRegionTransitions[] = {
    {RegionState::kBound, RegionEvent::kUnmap, RegionState::kUnbinding},
    {RegionState::kUnbinding, RegionEvent::kGone, RegionState::kGone},
};

struct Region {
  Machine<kRegionTransitions> state;
  EndpointId endpoint = kNoneId;
  std::shared_ptr<void> keep;  // keeps the memory mapped until the region has gone
  // As in the request.
  Direction direction = Direction::kTransmit;
  std::uint32_t base = 0;
  std::uint64_t bytes = 0;
  Reservation place;
  Counted one, counted_bytes;
};

// Whom the service is about to wake (wakes.h).
struct WakesDue {
  bool page = false;
  std::deque<Bell> channels;  // each once
  // Of connections that are over: they go when their threads are woken.
  std::deque<std::unique_ptr<Channel>> over;
  bool waits = false;  // for its turn
};

struct Client {
  ClientId id = 0;
  bool privileged = false;
  ClientIdentity identity;
  Payer payer;
  Reservation place;
  // What the program uses on all shards: its quotas limit this.
  std::shared_ptr<ProgramUse> use = std::make_shared<ProgramUse>();
  bool leaving = false;
  // How far the removal of the client has come.
  Bell next_bell = 0;
  EndpointId next_endpoint = kNoneId;
  RegionId next_region = kNoneId;
  std::shared_ptr<SharedMemory> page_memory;
  std::shared_ptr<SharedMemory> offered_page;  // takes its place when the client has mapped it
  Reservation files, mapping;                  // for the page that is offered
  // An eventfd that the client writes to wake a sleeping service. The service never reads it,
  // writes it or changes its flags. Empty for a client in this process.
  UniqueFd bell_file;
  BellCredit bell_credit;
  Doorbells::Progress rung;
  WakesDue wakes;
  std::shared_ptr<Torn> torn = std::make_shared<Torn>(false);

  ChannelTable channels;
  std::map<EndpointId, Endpoint> endpoints;
  std::map<RegionId, Region> regions;
  MxRecords mxs;

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
  [[nodiscard]] bool empty() const {
    return endpoints.empty() && regions.empty() && mxs.empty() && channels.count() == 0 &&
           !wakes.waits;
  }

  // Wakes a thread that sleeps on the page: for a connection to accept, a change of the link, or
  // any gathered channel. That thread wakes the others.
  void wake() const;
  // The same for the threads that sleep on the channel, or on the page if it is gathered.
  void wake(const Channel& channel) const;
  // Sets the channel's bit in the page, if it is gathered.
  void tell_news(Bell number) const;
};

// Names a channel to the Node: the client in the upper half, the bell number in the lower.
constexpr std::uint64_t cookie_of(ClientId client, Bell number) {
  return std::uint64_t{client} << 32 | number;
}
constexpr ClientId client_in(std::uint64_t cookie) {
  return static_cast<ClientId>(cookie >> 32);
}
constexpr Bell bell_in(std::uint64_t cookie) {
  return static_cast<Bell>(cookie);
}

}  // namespace stp::service
