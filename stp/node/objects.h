// SPDX-License-Identifier: BSD-3-Clause
// The objects of a Node: endpoints, regions of mapped memory, Virtual Connections.
#pragma once

#include <deque>
#include <memory>

#include "stp/base/linked_list.h"
#include "stp/base/timer_heap.h"
#include "stp/channel/doubt.h"
#include "stp/channel/node_side.h"
#include "stp/channel/retry.h"
#include "stp/channel/round_trip.h"
#include "stp/node/connection/key_guard.h"
#include "stp/node/connection/slot_credit.h"
#include "stp/node/connection/slot_questions.h"
#include "stp/node/connection/vc_state.h"
#include "stp/node/inbound/inbound.h"
#include "stp/node/inbound/unscheduled.h"
#include "stp/node/memory/bufx_range.h"
#include "stp/node/memory/mx_table.h"
#include "stp/node/node.h"
#include "stp/node/one_sided.h"
#include "stp/node/permitted_blocks.h"
#include "stp/node/sending.h"
#include "stp/wire/expected_data.h"

namespace stp {

struct Stocked {
  std::byte* channel;
  std::uint64_t cookie;
};

struct Vc;

// The lists a connection can be in.
struct IsReady;      // it has, or may have, something to send
struct IsTouched;    // its user may have to be notified or woken
struct IsWatched;    // pacing checks whether its grants make progress
struct IsInBacklog;  // established or in kAsked; not yet accepted
struct IsUntidy;     // Blocks of ended Transfers are to be freed
struct HasReady;     // the list of Owners with ready connections

// The owner of endpoints. Pacing never delays one owner for what another owner's peers owe, and
// owners take turns to send, however many connections each has.
struct Owner : Link<HasReady> {
  LinkedList<Vc, IsReady> ready;
  std::uint64_t granted = 0;  // bytes of CTS that have not arrived
  std::uint32_t held = 0;     // CTS that pacing holds back
  std::uint32_t endpoints = 0;
  // Pays for the memory that tracks data under way to its connections.
  std::shared_ptr<WindowPurse> windows;
};

struct Endpoint {
  EndpointId id = kNoneId;
  std::uint64_t owner_id = 0;
  Owner* owner = nullptr;
  EndpointConfig config;
  BufxRange receive, transmit;
  bool listening = false;
  std::uint32_t uport = 0;
  std::deque<Stocked> stock;
  LinkedList<Vc, IsInBacklog> backlog;
  std::uint32_t in_backlog = 0;  // length of `backlog`
  // Until then the endpoint accepts only requesters that have proved their address.
  Time crowded_until = 0;
  std::uint32_t vcs = 0, regions = 0;
};

struct Region {
  RegionId id = kNoneId;
  EndpointId endpoint = kNoneId;
  Direction direction = Direction::kTransmit;
  std::uint32_t first = 0, count = 0;
  std::uint32_t attached = 0;  // frames that still read this memory
  bool unmapped = false;
  RegionMxs mxs;
};

// State of the RSR that answers the RS after a CA (docs/protocol.md, 5.37): the Responder may need
// it to make the connection. The Node repeats it until another frame arrives.
// protocol: 5.37
struct Proof {
  static constexpr unsigned kTries = 5;

  bool wanted = false;               // no later frame has shown that the RSR arrived
  std::uint32_t r_id = 0, i_id = 0;  // of the question
  Time asked = 0;
};

// State of our RC: kNone (not pending), kWaits (waits until others are answered), kSent.
enum class Dial : std::uint8_t { kNone, kWaits, kSent };

// State that WakeUps keeps for a connection.
class WakeState {
  friend class WakeUps;
  bool urgent_ = false;    // wake its user at once
  bool drowsy_ = false;    // its user has been told; its wake-up may be delayed
  bool has_news_ = false;  // it has a header or state that its user was not told of
};

// The clocks that NodeDepartures starts when requests of this connection have left.
class DepartingClocks {
  friend class NodeDepartures;
  std::uint8_t clocks_ = 0;
};

// State that Pacing keeps for a connection.
class PacedVc {
  friend class Pacing;
  std::uint32_t held_ = 0;  // its CTS that pacing holds
  Time look_at_ = 0;        // time of the next check, if its grants are watched
};

// A Virtual Connection, or the Port of a connectionless endpoint. Such a Port has a channel like a
// connection and is always open; its peer is that of the request being sent.
struct Vc : TimerNode,
            Link<IsReady>,
            Link<IsTouched>,
            Link<IsWatched>,
            Link<IsInBacklog>,
            Link<IsUntidy> {
  VcId id = kNoneId;
  Endpoint* endpoint = nullptr;
  Machine<kVcTransitions> state;
  int error = 0;
  bool passive = false;      // made by the peer's RC; found by MAC, Port and `peer_key`
  bool end_counted = false;  // counted in vc_closed or vc_failed
  bool user_closed = false;  // the user has closed it
  WakeState wake;
  DepartingClocks departing;
  std::uint64_t cookie = 0;

  wire::ExpectedData expected;  // the peer's names, once it has sent them
  MacAddr peer_mac;
  std::uint16_t local_port = 0, peer_port = 0;
  std::uint32_t local_key = 0, peer_key = 0;
  unsigned local_max_stu = 0;
  unsigned peer_bufsize = 0, peer_max_stu = 0;
  std::uint32_t peer_slots = 0;
  std::uint32_t peer_uport = 0;
  OptionPayload option, peer_option;  // ours and the peer's: of RC and CA, finally of RD
  unsigned send_stu_log2 = 0;

  NodeChannel channel;
  SlotCredit credit;
  RoundTrip round_trip;
  Dial dial = Dial::kNone;
  Retry handshake;          // for RC, RD or DA until answered; in kOpen for the Proof
  Time drain_by = kNever;   // closed by its user: deadline for queued requests to progress
  Time decide_by = kNever;  // kAsked: deadline of the user's decision
  SlotQuestions questions;
  Time granted_at = 0;         // the last CTS left no later than this
  Time data_check = kNever;    // next check whether granted Blocks make progress
  Time no_slot_until = 0;      // the peer learns by then that it may send again
  Doubt doubt;                 // whether the sender has seen the grants
  Time heard = 0;              // last frame from the peer
  std::uint32_t attached = 0;  // frames that still read the user's memory
  Sending sending;
  Inbound inbound;
  PermittedBlocks permitted;
  std::unique_ptr<OneSided> one_sided;
  Proof proof;
  PacedVc paced;
  VcMxs mxs;
  std::unique_ptr<UnscheduledBlocks> unscheduled;  // connectionless only
  std::unique_ptr<KeyGuard> guard;                 // connectionless only

  VcTraffic traffic;

  [[nodiscard]] bool connectionless() const { return endpoint->config.connectionless; }
  template <typename List>
  [[nodiscard]] bool in() const {
    return static_cast<const Link<List>&>(*this).linked();
  }
  template <typename List>
  void leave() {
    static_cast<Link<List>&>(*this).unlink();
  }
};

}  // namespace stp
