// SPDX-License-Identifier: BSD-3-Clause
// What a Node keeps: endpoints, regions of mapped memory, Virtual Connections.
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

// The lists that a connection can stand in.
struct IsReady;      // it has something to send, or may have
struct IsTouched;    // its user may have to be told or woken
struct IsWatched;    // pacing looks whether anything comes of its grants
struct IsInBacklog;  // established, or asked for; not yet accepted
struct IsUntidy;     // something of what was granted has ended, and has to be taken down
struct HasReady;     // of Owners

// Whose endpoints are: pacing lets none be held up by what another owner's peers owe it, and each
// has its turn to send, however many connections another one has.
struct Owner : Link<HasReady> {
  LinkedList<Vc, IsReady> ready;
  std::uint64_t granted = 0;  // bytes of CTS that have not arrived
  std::uint32_t held = 0;     // CTS that pacing holds back
  std::uint32_t endpoints = 0;
  // That takes the memory which keeps track of what is on its way to them.
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
  std::uint32_t in_backlog = 0;  // how many
  // Until then there is no place but for those who show that they are there.
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

// The answer to the question that follows a CA (docs/protocol.md, 5.37): the Responder may have
// nothing else to make the connection from. It is repeated until another frame comes.
// protocol: 5.37
struct Proof {
  static constexpr unsigned kTries = 5;

  bool wanted = false;               // no later frame has shown that the RSR arrived
  std::uint32_t r_id = 0, i_id = 0;  // of the question
  Time asked = 0;
};

// An RC of ours: not any more, or never; for others to be answered; on its way.
enum class Dial : std::uint8_t { kNone, kWaits, kSent };

// What WakeUps knows of a connection.
class WakeState {
  friend class WakeUps;
  bool urgent_ = false;    // its user is to be woken at once
  bool drowsy_ = false;    // of those that have been touched: its user has been told
  bool has_news_ = false;  // that its user was not told of: a header, or another state
};

// Of its requests that are about to leave: NodeDepartures begins their clocks.
class DepartingClocks {
  friend class NodeDepartures;
  std::uint8_t clocks_ = 0;
};

// What Pacing knows of a connection.
class PacedVc {
  friend class Pacing;
  std::uint32_t held_ = 0;  // its CTS that wait
  Time look_at_ = 0;        // where its grants are watched: the next look
};

// A Virtual Connection; or the one Port of a connectionless endpoint, which has a channel as
// connections have, is open for all its life, and whose peer is that of the request being sent.
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
  bool passive = false;      // came by RC; `peer_key` with its MAC and Port finds it again
  bool end_counted = false;  // vc_opened = vc_closed + vc_failed, in the end
  bool user_closed = false;  // the user let go of it
  WakeState wake;
  DepartingClocks departing;
  std::uint64_t cookie = 0;

  wire::ExpectedData expected;  // of its peer, once that has told its names
  MacAddr peer_mac;
  std::uint16_t local_port = 0, peer_port = 0;
  std::uint32_t local_key = 0, peer_key = 0;
  unsigned local_max_stu = 0;
  unsigned peer_bufsize = 0, peer_max_stu = 0;
  std::uint32_t peer_slots = 0;
  std::uint32_t peer_uport = 0;
  OptionPayload option, peer_option;  // of RC and CA, in the end of RD: ours, the peer's
  unsigned send_stu_log2 = 0;

  NodeChannel channel;
  SlotCredit credit;
  RoundTrip round_trip;
  Dial dial = Dial::kNone;
  Retry handshake;          // RC, RD or DA waiting for its answer; while open, the proof's clock
  Time drain_by = kNever;   // its user has closed it: what is queued has to get on until then
  Time decide_by = kNever;  // kAsked: the user's time to decide ends
  SlotQuestions questions;
  Time granted_at = 0;         // the last CTS has left by then
  Time data_check = kNever;    // look then whether granted Blocks make progress
  Time no_slot_until = 0;      // its peer learns no later that it may send again
  Doubt doubt;                 // whether the sender has seen what granted them
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
  std::unique_ptr<KeyGuard> guard;                 // the same

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
