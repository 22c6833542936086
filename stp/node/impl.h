// SPDX-License-Identifier: BSD-3-Clause
// A Node is composed of mechanisms. Each owns its state, and its header says what it promises. A
// mechanism uses only those above it here.
#pragma once

#include "stp/node/endpoints.h"
#include "stp/node/expiry.h"
#include "stp/node/frame_receiver.h"
#include "stp/node/frame_sender.h"

namespace stp {

struct Node::Impl {
  Impl(const NodeConfig& config, Random& random) : common(config, random) {}

  Common common;
  // These outlive the connections, which return to them what they have.
  Pacing pacing{common.config.granted_limit, common.config.max_stu, vcs, common.counters,
                common.config.routed};
  EndpointTable endpoints{{common.config, vcs, pacing}};
  MappedMemory memory{common, vcs};
  PortTable vcs{common.config.shards == nullptr ? PortShare{}
                                                : common.config.shards->share(common.config.shard)};
  Turns turns;
  WakeUps wake_ups{common.events};
  NodeDepartures departures;
  VcTimers timers;
  Tidying tidying{memory, pacing};

  // Slots, and Blocks that do not arrive.
  StateExchange states{{common, pacing, turns, departures, timers, wake_ups}};
  Recovery recovery{{common, departures, states, timers}};

  // The handshake.
  Strangers strangers{vcs.share()};
  KnownPeers peers;
  Dials dials{{common, vcs, departures, timers}};
  VcEndings endings{{common, vcs, turns, wake_ups, departures, timers, pacing, memory, tidying,
                     peers, strangers, dials}};
  Openings openings{
      {common, vcs, pacing, strangers, peers, dials, endings, turns, wake_ups, timers}};
  Newcomers newcomers{{common, vcs, strangers, endings, states}};
  Listeners listeners{
      {common, vcs, strangers, peers, newcomers, openings, endings, timers, turns, wake_ups}};

  // Data in, answers to one-sided operations, and frames.
  Placement placement{{common, memory, states, recovery, wake_ups}};
  ConnectionlessPorts ports{{common, placement, wake_ups}};
  PeerGets gets{{common, memory, states, turns}};
  RequestChecks checks{{memory, recovery, pacing, tidying}};
  FrameReceiver receiver{{common, vcs, placement, listeners, openings, endings, ports, states, gets,
                          pacing, tidying, wake_ups}};
  FrameSender sender{
      {common, vcs, turns, wake_ups, departures, pacing, memory, states, checks, gets, endings}};
  Expiry expiry{{common, vcs, timers, wake_ups, departures, pacing, tidying, endings, listeners,
                 states, recovery}};
};

}  // namespace stp
