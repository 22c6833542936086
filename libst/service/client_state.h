// SPDX-License-Identifier: BSD-3-Clause
// What a Service knows of one client. Every id that a request names is looked up here, so that a
// client reaches nothing but its own.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "libst/service/client_page.h"
#include "libst/service/service.h"
#include "stp/channel/layout.h"

namespace stp::service {

// A bell number: the place of a channel in its client's table.
using Bell = std::uint32_t;

struct Channel {
  std::shared_ptr<SharedMemory> memory;
  EndpointId endpoint = kNoneId;
  VcId vc = kNoneId;  // kNoneId: in stock, or its connection is not accepted yet
  std::uint32_t slots = 0;
  bool closing = false;   // the client has asked to close it
  std::size_t bytes = 0;  // that it costs the service

  [[nodiscard]] ChannelControl& control() const {
    return *reinterpret_cast<ChannelControl*>(memory->data());
  }
};

struct Endpoint {
  bool listening = false;
  bool ending = false;            // closed by the client; goes once nothing of it is left
  std::uint32_t unaccepted = 0;   // channels in stock or of connections not accepted yet
  std::uint32_t channels = 0;     // all channels
  std::uint32_t regions = 0;      // those the Node still uses
  std::uint64_t bufx_reach[2]{};  // entries of its Bufx tables, by Direction
};

struct Region {
  enum class State { kBound, kUnbinding, kGone };
  State state = State::kBound;
  EndpointId endpoint = kNoneId;
  std::shared_ptr<void> keep;
  std::uint64_t mapped_bytes = 0;
  // As it was asked for.
  Direction direction = Direction::kTransmit;
  std::uint32_t base = 0;
  std::uint64_t bytes = 0;
};

// What an Mx is on: it goes with either.
struct MxUse {
  RegionId region = kNoneId;
  VcId vc = kNoneId;  // kNoneId: all connections of the region's endpoint
};

struct Client {
  ClientId id = 0;
  bool privileged = false;
  ClientIdentity identity;
  bool leaving = false;
  std::shared_ptr<SharedMemory> page_memory;

  std::vector<std::unique_ptr<Channel>> channels;  // by bell number
  std::vector<Bell> free_bells;
  std::unordered_map<VcId, Bell> vcs;
  std::unordered_map<EndpointId, Endpoint> endpoints;
  std::unordered_map<RegionId, Region> regions;
  std::unordered_map<std::uint16_t, MxUse> mxs;

  std::uint64_t channel_bytes = 0, slots = 0, mapped_bytes = 0, bufx_entries = 0;

  [[nodiscard]] ClientPage& page() const {
    return *reinterpret_cast<ClientPage*>(page_memory->data());
  }
  // nullptr: not this client's, or not any more.
  Endpoint* endpoint(EndpointId id_of) {
    auto const at = endpoints.find(id_of);
    return at == endpoints.end() || at->second.ending ? nullptr : &at->second;
  }
  Region* region(RegionId id_of) {
    auto const at = regions.find(id_of);
    return at == regions.end() ? nullptr : &at->second;
  }
  Channel* connection(VcId vc) {
    auto const at = vcs.find(vc);
    return at == vcs.end() ? nullptr : channels[at->second].get();
  }
  [[nodiscard]] Channel* channel(Bell bell) const {
    return bell < channels.size() ? channels[bell].get() : nullptr;
  }
};

}  // namespace stp::service
