// SPDX-License-Identifier: BSD-3-Clause
// The objects of a Node: endpoints, Virtual Connections, and the order in which these send.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "stp/base/linked_list.h"
#include "stp/base/timer_heap.h"
#include "stp/base/work_meter.h"
#include "stp/channel/layout.h"
#include "stp/channel/retry.h"
#include "stp/channel/rings.h"
#include "stp/counters.h"
#include "stp/node/connection/key_guard.h"
#include "stp/node/connection/slot_questions.h"
#include "stp/node/connection/vc_state.h"
#include "stp/node/inbound/inbound.h"
#include "stp/node/inbound/unscheduled.h"
#include "stp/node/memory/mapped_memory.h"
#include "stp/node/node.h"
#include "stp/wire/expected_data.h"
#include "stp/wire/operations.h"

namespace stp {

// The request that a connection is sending, and its progress.
struct Sending {
  SendEntry entry;
  enum class Source : std::uint8_t { kUser, kRegion, kValue };
  Source source = Source::kUser;  // the user's transmit buffers; an answer's region; `payload`
  std::uint64_t done = 0;         // bytes
  std::uint32_t stu_num = 0;      // of the next STU

  [[nodiscard]] bool appends() const {
    return source == Source::kUser && entry.payload_length == wire::kAppendSize;
  }
};

// The peer's Gets and FetchOps on one connection: the FetchOps executed with their results, so that
// each is executed once however often the peer repeats it, and the answers still to be sent.
class OneSided {
 public:
  static constexpr std::uint32_t kWindow = 64;  // results kept; the most answers waiting

  // State of the FetchOp with a G_num.
  enum class Fetch : std::uint8_t {
    kNew,        // not executed: call done() or refuse()
    kDone,       // executed: result() is its answer
    kRefused,    // refused: refuse it again
    kConfirmed,  // the requester has its answer
    kStale,      // too old to tell whether it was executed
  };
  // Call when a FetchOp arrives, or the confirmation that its answer arrived.
  // protocol: 9.16
  Fetch seen(std::uint32_t g_num) {
    if (!any_ || static_cast<std::int32_t>(g_num - newest_) > 0) newest_ = g_num;
    any_ = true;
    if (newest_ - g_num >= kWindow) return Fetch::kStale;
    const auto& result = at(g_num);
    return result.g_num == g_num ? result.state : Fetch::kNew;
  }
  void done(std::uint32_t g_num, std::uint64_t value) { at(g_num) = {g_num, Fetch::kDone, value}; }
  void refuse(std::uint32_t g_num) { at(g_num) = {g_num, Fetch::kRefused, 0}; }
  // The requester has the answer of a kDone FetchOp: it is not sent again.
  void confirm(std::uint32_t g_num) { at(g_num).state = Fetch::kConfirmed; }
  // The old value, for a kDone FetchOp.
  [[nodiscard]] std::uint64_t result(std::uint32_t g_num) { return at(g_num).value; }

  struct Reply {
    SendEntry entry;
    Sending::Source source;
  };
  // Whether an answer to `g_num` waits to be sent.
  [[nodiscard]] bool owes(std::uint32_t g_num) const {
    work::count("answers that a connection owes", replies_.size());
    for (const auto& reply : replies_)
      if (reply.entry.header.b_num == g_num) return true;
    return false;
  }
  // Queues an answer. False: kWindow already wait.
  bool owe(const Reply& reply) {
    if (replies_.size() == kWindow) return false;
    replies_.push_back(reply);
    return true;
  }
  // The answer to send next; nullptr: none. Call pop() when it leaves.
  [[nodiscard]] const Reply* next() const { return replies_.empty() ? nullptr : &replies_.front(); }
  void pop() { replies_.pop_front(); }

 private:
  struct Result {
    std::uint32_t g_num = 0;
    Fetch state = Fetch::kNew;
    std::uint64_t value = 0;
  };
  Result& at(std::uint32_t g_num) { return results_[g_num % kWindow]; }

  bool any_ = false;
  std::uint32_t newest_ = 0;               // the highest G_num seen
  std::array<Result, kWindow> results_{};  // FetchOp g at g % kWindow
  std::deque<Reply> replies_;
};

// The start addresses of the Blocks that the peer's CTS permit. A user's request names the address
// of its bytes, which is inside the Block if it repeats the Block's tail. From both follows the
// number of the first STU (docs/protocol.md, section 8).
// Looked up for each DATA of a user, so it is sorted. When full, the oldest entry is replaced.
class PermittedBlocks {
 public:
  void remember(std::uint32_t r_id, std::uint32_t b_num, std::uint64_t start) {
    const auto key = key_of(r_id, b_num);
    auto at = place_of(key);
    if (at != blocks_.end() && at->key == key) {
      at->start = start;
      return renew(key);
    }
    if (keys_.size() < kCapacity) {
      keys_.push_back(key);
    } else {
      auto& oldest = keys_[next_++ % kCapacity];
      blocks_.erase(place_of(oldest));
      oldest = key;
      at = place_of(key);
    }
    blocks_.insert(at, {key, start});
    lowest_ = blocks_.front().key;
    highest_ = blocks_.back().key;
  }
  // The linear address of the Block's first byte; nullopt if no CTS permitted it, or too long ago.
  [[nodiscard]] std::optional<std::uint64_t> start_of(std::uint32_t r_id,
                                                      std::uint32_t b_num) const {
    const auto key = key_of(r_id, b_num);
    // Mostly the Block is of a region, which was opened before the Transfers that are remembered,
    // or after them.
    if (key < lowest_ || highest_ < key) return std::nullopt;
    const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), key, before);
    if (at == blocks_.end() || at->key != key) return std::nullopt;
    return at->start;
  }
  void clear() { *this = {}; }

 private:
  static constexpr std::size_t kCapacity = 64;
  struct Block {
    std::uint64_t key, start;
  };
  static std::uint64_t key_of(std::uint32_t r_id, std::uint32_t b_num) {
    return std::uint64_t{r_id} << 32 | b_num;
  }
  static bool before(const Block& block, std::uint64_t key) { return block.key < key; }
  std::vector<Block>::iterator place_of(std::uint64_t key) {
    return std::lower_bound(blocks_.begin(), blocks_.end(), key, before);
  }

  // Makes a repeated CTS the newest: the user is about to send its Block from the middle.
  void renew(std::uint64_t key) {
    const auto newest = (next_ + keys_.size() - 1) % keys_.size();
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    auto at = static_cast<std::size_t>(found - keys_.begin());
    work::count("CTS remembered", keys_.size());
    for (; at != newest; at = (at + 1) % keys_.size()) keys_[at] = keys_[(at + 1) % keys_.size()];
    keys_[newest] = key;
  }

  std::uint64_t lowest_ = 1, highest_ = 0;  // of blocks_, beside what each Put uses of a connection
  std::vector<Block> blocks_;               // by key
  std::vector<std::uint64_t> keys_;         // in order of arrival, from next_ on
  std::size_t next_ = 0;
};

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
struct Owner : ListHook<HasReady> {
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

  [[nodiscard]] BufxRange& range(Direction direction) {
    return direction == Direction::kReceive ? receive : transmit;
  }
};

// State of the RSR that answers the RS after a CA (docs/protocol.md, 5.37): the Responder may need
// it to make the connection. StateExchange repeats it until another frame arrives.
// protocol: 5.37
class Proof {
 public:
  static constexpr unsigned kTries = 5;
  [[nodiscard]] Time deadline() const { return clock_.deadline(); }
  void stop() { *this = {}; }

 private:
  friend class StateExchange;
  bool wanted_ = false;                // no later frame has shown that the RSR arrived
  std::uint32_t r_id_ = 0, i_id_ = 0;  // of the question
  Time asked_ = 0;
  Retry clock_;
};

// The time that a user has to decide on a Request_Connection.
// protocol: 5.30
class Decision {
 public:
  static constexpr Time kPatience = 60 * kSecond;
  // The time without a repeat of the RC after which the requester no longer waits.
  static constexpr Time kSilence = 5 * kSecond;

  void begin(Time now) { by_ = now + kPatience; }
  void stop() { by_ = kNever; }
  [[nodiscard]] bool is_late(Time now) const { return now >= by_; }
  // `heard`: when the RC was last repeated. kNever: there is nothing to decide.
  [[nodiscard]] Time deadline(Time heard) const {
    return by_ == kNever ? kNever : std::min(by_, heard + kSilence);
  }

 private:
  Time by_ = kNever;
};

// State of our RC.
class DialState {
  friend class Dials;
  // Not pending; waits until others are answered; sent.
  enum class State : std::uint8_t { kNone, kWaits, kSent };
  State state_ = State::kNone;
  bool is_there_ = false;     // the peer's Node has shown itself
  std::uint16_t cut_at_ = 0;  // how often it had been sent when a shortened answer came; 0: none
};

// A connection that its user has closed sends its queued requests first.
class Draining {
 public:
  // When the queued requests must have made progress; kNever: it is not closed.
  [[nodiscard]] Time deadline() const { return by_; }

 private:
  friend class VcEndings;
  Time by_ = kNever;
};

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

// State that Pacing keeps for a connection, and whether SendBounds or PortRates has it wait.
class PacedVc {
 public:
  bool waits_to_send = false;  // they queue it again

 private:
  friend class Pacing;
  bool waits_ = false;      // for room on the path
  std::uint32_t held_ = 0;  // its CTS that pacing holds
  Time look_at_ = 0;        // time of the next check, if its grants are watched
};

// What the marks of routers mean on the way between two stations.
// protocol: 13.22
enum class Marks : std::uint8_t {
  kNone,    // one of them does not heed them
  kHeeded,  // both do
  kWanted,  // also, routers may mark the STUs of Blocks that the peer has granted
};

// A Virtual Connection, or the Port of a connectionless endpoint. Such a Port has a channel like a
// connection and is always open; its peer is that of the request being sent.
//
// What each Put and its answer use stands together, so that a connection that is used now and then
// brings few cache lines: four, from IsReady to the beginning of `permitted`, two of `channel`,
// whose second one has what `credit` needs, and one in `inbound`.
struct Vc : ListHook<IsWatched>,
            ListHook<IsInBacklog>,
            ListHook<IsUntidy>,
            TimerNode,
            ListHook<IsReady>,
            ListHook<IsTouched> {
  VcId id = kNoneId;
  Endpoint* endpoint = nullptr;
  std::uint64_t cookie = 0;
  Machine<kVcTransitions> state;
  bool user_closed = false;  // the user has closed it
  // Its peer has not shown that it is there, and until then gets nothing but CAs.
  // protocol: 13.21
  bool waits_for_proof = false;
  bool is_sending = false;  // a DATA of several STUs is partly sent: see `sending`
  WakeState wake;
  DepartingClocks departing;

  wire::ExpectedData expected;  // the peer's names, once it has sent them
  MacAddr peer_mac;
  std::uint16_t local_port = 0, peer_port = 0;
  std::uint8_t peer_bufsize = 0, send_stu_log2 = 0;
  std::uint32_t local_key = 0, peer_key = 0;
  std::uint32_t attached = 0;  // frames that still read the user's memory
  Time heard = 0;              // last frame from the peer

  Draining draining;
  VcTraffic traffic;
  std::unique_ptr<OneSided> one_sided;
  PermittedBlocks permitted;  // at its beginning

  int error = 0;
  bool passive = false;      // made by the peer's RC; found by MAC, Port and `peer_key`
  bool end_counted = false;  // counted in vc_closed or vc_failed
  bool padded = false;       // the RC that made it was
  Marks marks = Marks::kNone;
  RoundTrip round_trip;
  VcMxs mxs;
  NodeChannel channel;  // at its end
  SlotCredit credit;    // at its beginning

  DialState dial;
  Retry handshake;    // for RC, RD or DA until answered
  Decision decision;  // kAsked
  SlotQuestions questions;
  RecoveryState recovery;
  Proof proof;
  std::unique_ptr<UnscheduledBlocks> unscheduled;  // connectionless only
  std::unique_ptr<KeyGuard> guard;                 // connectionless only
  unsigned local_max_stu = 0, peer_max_stu = 0;
  std::uint32_t peer_slots = 0;
  std::uint32_t peer_uport = 0;
  OptionPayload option, peer_option;  // ours and the peer's: of RC and CA, finally of RD

  PacedVc paced;  // before what begins a cache line, where there is room
  Sending sending;
  Inbound inbound;

  // Brings what a Put and its answer use of it into the caches.
  void fetch_ahead() const {
    fetch_lines(static_cast<const ListHook<IsReady>*>(this), &permitted);
    fetch_line(&permitted);
    channel.fetch_ahead();
    inbound.fetch_ahead();
  }
  [[nodiscard]] bool connectionless() const { return endpoint->config.connectionless; }
  [[nodiscard]] MappedMemory::Reach reach() const { return {endpoint->id, id, endpoint->receive}; }
  // `header`, addressed to the peer.
  // protocol: 3.3
  [[nodiscard]] wire::Header addressed(wire::Header header) const {
    header.d_port = peer_port;
    header.s_port = local_port;
    header.d_key = peer_key;
    return header;
  }
  // A header for the peer, with the fields of `operation`.
  template <typename Operation>
  [[nodiscard]] wire::Header header_for(const Operation& operation, std::uint16_t flags = 0) const {
    return addressed(wire::to_header(operation, flags));
  }
  // The reason to drop a frame that is illegal in this state. While a connection ends, the peer may
  // have sent it before it knew.
  // protocol: 5.17
  [[nodiscard]] DropReason illegal() const {
    const bool begins = state == VcState::kConnecting || state == VcState::kAsked;
    const bool ends = !begins && (state != VcState::kOpen || user_closed);
    return ends ? DropReason::kCrossedEnd : DropReason::kBadState;
  }
  template <typename List>
  [[nodiscard]] bool in() const {
    return static_cast<const ListHook<List>&>(*this).linked();
  }
  template <typename List>
  void leave() {
    static_cast<ListHook<List>&>(*this).unlink();
  }
};

// Round robin of senders: owners take turns, and the connections of one owner take turns. More
// connections do not give an owner a larger share.
class Turns {
 public:
  // No connection has anything to send.
  [[nodiscard]] bool empty() const { return owners_.empty(); }
  // `vc` has, or may have, something to send. Queues it behind the others of its owner unless it is
  // queued already, or waits for its peer (Openings::proven() queues it then).
  void enter(Vc& vc) {
    if (vc.in<IsReady>() || vc.waits_for_proof) return;
    auto& owner = *vc.endpoint->owner;
    owner.ready.push_back(vc);
    if (!owner.linked()) owners_.push_back(owner);
  }
  // Takes the connection that sends next. Requires !empty().
  Vc& next() {
    auto& owner = owners_.front();
    auto& vc = owner.ready.pop_front();
    if (owner.ready.empty())
      owner.unlink();
    else if (owners_.after(owner) != nullptr)
      owners_.push_back(owners_.pop_front());
    return vc;
  }
  // Call when `vc` has ended.
  static void leave(Vc& vc) {
    vc.leave<IsReady>();
    auto& owner = *vc.endpoint->owner;
    if (owner.ready.empty()) owner.unlink();
  }

 private:
  LinkedList<Owner, HasReady> owners_;
};

}  // namespace stp
