// SPDX-License-Identifier: BSD-3-Clause
// The protocol engine of one NIC queue, without IO. Frames, time and randomness come in as
// arguments; frames and events go out. One thread at a time may be inside a Node.
//
// The loop that drives it:
//   node.receive(burst, now);                      // frames that arrived
//   node.expire(now);                              // timers, when now >= node.next_deadline()
//   n = node.transmit(frames, now);                // frames to send, until 0
//   node.transmitted(frames[i].token);             // once the link no longer reads attached memory
//   while (node.next_event(event)) ...             // who to wake, what has ended
// Each call does a bounded amount of work, whatever users and peers do. What is left of it is done
// by expire() and transmit() of the next turn: until then next_deadline() is a time that has come.
// Functions that can fail return 0 or a negative errno.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>

#include "stp/counters.h"
#include "stp/node/inbound/window_budget.h"
#include "stp/types.h"
#include "stp/wire/layout.h"

namespace stp {

class Shards;

// What a Node has room for, all owners together: more of them are refused with -ENOSPC. Ports and
// Mx have names of 16 bits, of which 0 is none.
inline constexpr std::size_t kMaxEndpoints = std::size_t{1} << 17;
inline constexpr std::size_t kMaxRegions = std::size_t{1} << 20;
inline constexpr std::size_t kMaxPorts = 0xffff;
inline constexpr std::size_t kMaxMxs = 0xffff;

struct NodeConfig {
  MacAddr mac;
  unsigned max_stu = 10;              // exponent: the longest STU the link carries, both ways
  std::optional<std::uint16_t> vlan;  // tag every frame that is sent
  // STUs of at least this many bytes are attached to their frame instead of copied into it.
  // Larger than any STU: the link cannot attach, copy all.
  std::size_t attach_from = std::size_t{1} << 17;
  // Receiver-driven pacing: bytes granted by CTS and not yet arrived, over all connections.
  // An owner of whom nothing is outstanding may always grant one Block more. 0: no bound.
  std::uint64_t granted_limit = 0;
  // Memory to keep track of what is on its way: what it refuses, CTS wait for and MRA are rejected
  // for. It outlives the Node. nullptr: there is no bound.
  WindowBudget* windows = nullptr;
  // Fewer than there is room for, if need be.
  std::size_t max_endpoints = kMaxEndpoints, max_regions = kMaxRegions;
  // The Nodes behind this address, and which of them this is (shards.h). It outlives the Node.
  // nullptr: there is no other.
  Shards* shards = nullptr;
  unsigned shard = 0;
};

// Ids carry a generation: one that has ended is never mistaken for its successor.
using EndpointId = std::uint64_t;
using RegionId = std::uint64_t;
using VcId = std::uint64_t;
inline constexpr std::uint64_t kNoneId = 0;

// What may come along with a control operation.
using OptionPayload = std::optional<std::array<std::byte, wire::kOptionSize>>;
// What a frame brought: empty, or exactly that many bytes.
inline OptionPayload to_option(Bytes bytes) {
  OptionPayload option;
  if (bytes.size() == wire::kOptionSize) std::ranges::copy(bytes, option.emplace().begin());
  return option;
}

// What one user handle (st_create, st_endpoint) chooses. Ranges are in Bufx entries.
struct EndpointConfig {
  bool connectionless = false;
  unsigned bufsize = 14;
  unsigned max_stu = 14;   // announced as the smaller of this and the link's
  std::uint16_t port = 0;  // 0: the Node chooses. -EADDRNOTAVAIL: it is another shard's
  std::uint32_t key = 0;   // 0: the Node draws one
  std::uint32_t rx_bufx_base = 0, rx_bufx_count = 65'536;
  std::uint32_t tx_bufx_base = 0, tx_bufx_count = 65'536;
  std::uint32_t slots = 64;
  std::uint32_t credits = 64;
  // protocol: 4.4
  bool checksum = false;   // send Cksum with everything
  bool keep_alive = true;  // find out when a silent peer is gone
  bool recover = false;    // send a Block's CTS again, with F_Offset, when its STUs stay away
  // Listening: the user sees each RC before it is answered, and decides (admit, refuse).
  bool inspect = false;
  // An RC is repeated at least this long, and at least eight times, before it is given up.
  Time connect_patience = 0;
};

enum class Direction : std::uint8_t { kTransmit, kReceive };

// What an Mx permits a peer to do.
namespace permit {
inline constexpr std::uint8_t kData = 1, kGet = 2, kFetchOp = 4, kAll = 7;
}

// One frame to send. The caller provides `head`; the Node fills the rest.
struct TxToken {
  VcId vc = kNoneId;
  RegionId region = kNoneId;  // kNoneId: nothing attached, no need to give the token back
};
struct TxFrame {
  std::byte* head = nullptr;    // in: room for a whole frame (frame_room() bytes)
  std::size_t head_length = 0;  // out: bytes of the frame that stand in `head`
  Bytes attached;               // out: the user's own memory that follows them on the link
  TxToken token;                // out: see Node::transmitted
};

// One that a Node sent to itself, as it left: what is attached is copied once, from the one user's
// memory to the other's.
struct LoopedFrame {
  Bytes head;
  Bytes attached;
};

struct Event {
  enum class Kind : std::uint8_t {
    kNews,         // vc's channel is gathered, and has a header or another state for its user
    kWake,         // a user sleeps on vc's channel: wake its futex word
    kAcceptReady,  // endpoint has a connection to accept
    kStockLow,     // endpoint listens, and has used up a stocked channel
    kVcOver,       // the peer has disconnected vc, or it has failed; its user still holds it
    kVcGone,       // the Node no longer uses vc's channel memory; `cookie` names it
    kRegionGone,   // the Node no longer uses region's memory
  };
  Kind kind;
  std::uint64_t id = kNoneId;  // VcId, EndpointId or RegionId
  std::uint64_t cookie = 0;    // kNews, kWake, kVcOver, kVcGone: as given with the channel
};

enum class VcState : std::uint8_t {
  kConnecting,   // RC sent, waiting for CA
  kOpen,         // established
  kClosing,      // RD sent (after the last queued request), waiting for DA
  kPeerClosing,  // DA sent, waiting for DC
  kBothClosing,  // RD and DA sent
  kPeerClosed,   // disconnected by the peer; the user still holds it
  kFailed,       // given up; the user still holds it
  kAsked,        // RC arrived at a listener that inspects: the user decides
};

// What has crossed a connection: operations other than DATA, and user bytes.
struct VcTraffic {
  std::uint64_t rx_control = 0, rx_data_bytes = 0;
  std::uint64_t tx_control = 0, tx_data_bytes = 0;
};

struct VcInfo {
  VcState state;
  EndpointId endpoint;
  std::uint64_t cookie;
  int error;  // negative errno with kFailed
  MacAddr peer_mac;
  std::uint16_t local_port, remote_port;
  std::uint32_t local_key, remote_key;
  unsigned local_bufsize, remote_bufsize;
  unsigned local_max_stu, remote_max_stu;
  std::uint32_t local_slots, remote_slots;
  std::uint32_t credit;  // Slots believed free at the peer
  Time round_trip;       // smoothed estimate
  std::uint32_t peer_uport;
  OptionPayload peer_option;  // of its RC, its CA, its refusal, or its RD
  bool passive;               // the peer has asked for the connection
  bool connectionless;        // an endpoint's own: it has no peer
  std::uint32_t uport;        // the listener's upper-layer port, here or at the peer
  VcTraffic traffic;
};

class Node {
 public:
  Node(const NodeConfig& config, Random& random);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // --- frames and time -------------------------------------------------------------------------
  void receive(std::span<const Bytes> burst, Time now);
  // Tokens of such frames are handed to transmitted() after this.
  void receive_looped(std::span<const LoopedFrame> burst, Time now);
  std::size_t transmit(std::span<TxFrame> frames, Time now);
  void transmitted(const TxToken& token);
  [[nodiscard]] Time next_deadline() const;
  void expire(Time now);
  // Nothing has arrived lately: who would be woken a little later, to save wake-ups, is woken now.
  void idle();
  bool next_event(Event& out);
  // Bytes a TxFrame's `head` must have room for.
  [[nodiscard]] std::size_t frame_room() const;

  // --- endpoints -------------------------------------------------------------------------------
  // `owner`: whose it is, of those that share the Node.
  int open_endpoint(const EndpointConfig& config, EndpointId& out, std::uint64_t owner = 0);
  // Sizes, ranges, port, key: -EBUSY once memory is mapped or a connection exists.
  int configure(EndpointId endpoint, const EndpointConfig& config);
  int endpoint_config(EndpointId endpoint, EndpointConfig& out) const;
  // Ends listening. Connections and regions of the endpoint must be gone (-EBUSY).
  int close_endpoint(EndpointId endpoint);

  // --- memory ----------------------------------------------------------------------------------
  // Binds memory to consecutive Bufx entries from `base` on. Each piece is a whole number of
  // buffers; there are at most 16. The memory must stay readable (and for kReceive writable) until
  // kRegionGone.
  int map(EndpointId endpoint, Direction direction, std::uint32_t base,
          std::span<const MutableBytes> pieces, RegionId& out);
  // The Bufx entries and every Mx on them stop working at once; kRegionGone tells when the last
  // frame has let go of the memory.
  int unmap(RegionId region);
  // Bytes of the tables that say what is bound where, those of one endpoint; and, at most, those
  // that a mapping would add to them. 0: there is no such endpoint.
  [[nodiscard]] std::size_t table_bytes(EndpointId endpoint) const;
  [[nodiscard]] std::size_t table_growth(EndpointId endpoint, Direction direction,
                                         std::uint32_t base,
                                         std::span<const MutableBytes> pieces) const;
  // `vc` kNoneId: good on every connection of the region's endpoint.
  int alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out);
  int free_mx(EndpointId endpoint, std::uint16_t mx);

  // --- connections -----------------------------------------------------------------------------
  // Channels are memory laid out by ChannelGeometry, zeroed; they stay with the Node until kVcGone.
  int listen(EndpointId endpoint, std::uint32_t uport);
  // Its connections go on; those that wait to be accepted can still be.
  int unlisten(EndpointId endpoint);
  // A channel for a connection yet to come; a listener answers as many RCs as it has in stock.
  int stock(EndpointId endpoint, std::byte* channel, std::uint64_t cookie);
  // Takes back a stocked channel when listening ends. False: none left.
  bool unstock(EndpointId endpoint, std::uint64_t& cookie);
  // -EAGAIN: none waits. Where the endpoint inspects, the connection is in state kAsked.
  int accept(EndpointId endpoint, VcId& out);
  // Connections that wait to be accepted.
  [[nodiscard]] std::size_t backlog(EndpointId endpoint) const;
  // The user's decision on a connection that was asked for, with option payload for the peer. A
  // refused one goes (kVcGone). -EISCONN: it is decided. What admit returns of one that was not
  // decided in time: -ETIMEDOUT, or -ECONNABORTED (the peer has given up).
  int admit(VcId vc, const OptionPayload& option, Time now);
  int refuse(VcId vc, const OptionPayload& option, Time now);
  int connect(EndpointId endpoint, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
              std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option = {});
  // A connectionless endpoint takes its Port and its Key, and its channel; from here on anybody who
  // knows them reaches it. One per endpoint (-EBUSY). It is then handled as a connection is: kick,
  // close, vc_info (whose remote part says nothing).
  int open_port(EndpointId endpoint, std::byte* channel, std::uint64_t cookie, VcId& out, Time now);
  // Sends what is queued, then disconnects; kVcGone follows. `at_once`: drops what is queued.
  // `option`: for the peer's user, along with the RD.
  int close(VcId vc, bool at_once, Time now, const OptionPayload& option = {});
  int vc_info(VcId vc, VcInfo& out) const;
  // The user has put requests into vc's transmit queue.
  void kick(VcId vc);

  // --- what happened ---------------------------------------------------------------------------
  [[nodiscard]] const Counters& counters() const;
  // The data plane counts its own (a frame of another EtherType, say) here.
  [[nodiscard]] Counters& counters();
  [[nodiscard]] const NodeConfig& config() const;
  [[nodiscard]] std::size_t vc_count() const;
  void for_each_vc(void (*visit)(void* context, VcId vc), void* context) const;
  // The connection with the lowest local Port above `port`; kNoneId: there is none. A walk that
  // goes on where it stopped, while connections come and go.
  [[nodiscard]] VcId vc_after(std::uint16_t port) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp
