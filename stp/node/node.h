// SPDX-License-Identifier: BSD-3-Clause
// The protocol engine of one NIC queue, without IO. The caller passes in frames, time and
// randomness; the Node returns frames and events. Only one thread at a time may call a Node.
//
// The loop that drives it:
//   node.receive(burst, now);                      // frames that arrived
//   node.expire(now);                              // timers, when now >= node.next_deadline()
//   n = node.transmit(frames, now);                // frames to send, until 0
//   node.transmitted(frames[i].token);             // once the link no longer reads attached memory
//   while (node.next_event(event)) ...             // who to wake, what has ended
// Each call does a bounded amount of work, whatever users and peers do. expire() and transmit() of
// the next turn do the rest; until then next_deadline() returns a time that has passed. Functions
// that can fail return 0 or a negative errno.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "stp/counters.h"
#include "stp/types.h"
#include "stp/wire/layout.h"

namespace stp {

// Limits the memory that a Node uses to track data on its way to its users.
class WindowBudget {
 public:
  virtual ~WindowBudget() = default;
  // A purse of `owner` (Node::open_endpoint) changes its share from `before` to `bytes`. An owner
  // may have several purses. False: over the owner's limit, nothing changed. A smaller share is
  // never refused.
  virtual bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) = 0;
};

class Shards;

// Limits of a Node, over all owners. Beyond them calls return -ENOSPC. Ports and Mx are 16-bit
// names; 0 names nothing.
inline constexpr std::size_t kMaxEndpoints = std::size_t{1} << 17;
inline constexpr std::size_t kMaxRegions = std::size_t{1} << 20;

// Which stations count as one where strangers have few places each: whoever has a network of
// addresses can use any number of them.
class Sources {
 public:
  virtual ~Sources() = default;
  [[nodiscard]] virtual MacAddr source_of(const MacAddr& station) const = 0;
  // Of how many sources somebody may be who sends under false addresses of one provider's network:
  // they have a name in common.
  [[nodiscard]] virtual MacAddr network_of(const MacAddr& station) const {
    return source_of(station);
  }
};

// Which other stations are reached through a network that others use, too.
class SharedWays {
 public:
  virtual ~SharedWays() = default;
  // The Node asks when it opens a connection with a station that has shown that it is there, and
  // when one of its connectionless endpoints sends: so it may be asked often.
  [[nodiscard]] virtual bool is_shared(const MacAddr& station) = 0;
  // From now on the link tells which frames routers have marked.
  virtual void tell_marks() = 0;
};

struct NodeConfig {
  MacAddr mac;
  unsigned max_stu = 10;              // exponent: the longest STU the link carries, both ways
  std::optional<std::uint16_t> vlan;  // tag every frame that is sent
  // STUs of at least this many bytes are attached to their frame instead of copied into it.
  // Larger than any STU: the link cannot attach, copy all.
  std::size_t attach_from = std::size_t{1} << 17;
  // Receiver-driven pacing: limit of the bytes that CTS have granted and that have not arrived,
  // over all connections. An STU shorter than the longest counts as one of the longest. An owner
  // with nothing outstanding may always grant one more Block. 0: no limit.
  std::uint64_t granted_limit = 0;
  // The limit may grow up to here, while what is granted comes soon. Less: it does not grow.
  std::uint64_t granted_most = 0;
  // The ways to all other stations lead through networks that others use, too, or to those of which
  // `ways` says so: what is granted is also limited by what the path from each of them carries.
  bool routed = false;
  // Must outlive the Node. nullptr: no others.
  SharedWays* ways = nullptr;
  // The link can tell which frames routers have marked, and lets them mark those that say so (ECN).
  // With `ways` it does when it is told to.
  // protocol: 13.22
  bool marks = false;
  // The link is one over IP. What is too long for the way to a station is lost, and nobody says so:
  // RC and CA are as long as the longest datagrams that they promise (stp/wire/padding.h). And
  // whoever has not shown that it is there gets no more bytes than came from it.
  // protocol: 13.20, 13.21
  bool padded_requests = false;
  // Must outlive the Node. nullptr: each station is a source of its own.
  const Sources* sources = nullptr;
  // Budget of the memory that tracks data under way. When it refuses, CTS wait and MRA are
  // rejected. Must outlive the Node. nullptr: no limit.
  WindowBudget* windows = nullptr;
  // Lower limits than kMaxEndpoints and kMaxRegions, if wanted.
  std::size_t max_endpoints = kMaxEndpoints, max_regions = kMaxRegions;
  // The Nodes that share this address, and the index of this one (shards.h). Must outlive the Node.
  // nullptr: this is the only Node.
  Shards* shards = nullptr;
  unsigned shard = 0;
};

// Ids carry a generation: the id of an ended object never names a later one.
using EndpointId = std::uint64_t;
using RegionId = std::uint64_t;
using VcId = std::uint64_t;
inline constexpr std::uint64_t kNoneId = 0;

// Option payload of a control operation.
using OptionPayload = std::optional<std::array<std::byte, wire::kOptionSize>>;
// `bytes`: from a frame; empty, or exactly kOptionSize bytes.
inline OptionPayload to_option(Bytes bytes) {
  OptionPayload option;
  if (bytes.size() == wire::kOptionSize) std::ranges::copy(bytes, option.emplace().begin());
  return option;
}

// The settings of one user handle (st_create, st_endpoint). Ranges are in Bufx entries.
struct EndpointConfig {
  bool connectionless = false;
  unsigned bufsize = 14;
  unsigned max_stu = 14;   // the Node announces the smaller of this and the link's
  std::uint16_t port = 0;  // 0: the Node chooses. -EADDRNOTAVAIL: belongs to another shard
  std::uint32_t key = 0;   // 0: the Node draws one
  std::uint32_t rx_bufx_base = 0, rx_bufx_count = 65'536;
  std::uint32_t tx_bufx_base = 0, tx_bufx_count = 65'536;
  std::uint32_t slots = 64;
  std::uint32_t credits = 64;
  // protocol: 4.4
  bool checksum = false;   // send Cksum with everything
  bool keep_alive = true;  // detect that a silent peer is gone
  bool recover = false;    // repeat a Block's CTS, with F_Offset, when its STUs do not arrive
  // For listeners: the user sees each RC before the Node answers it, and calls admit or refuse.
  bool inspect = false;
  // The Node repeats an RC for at least this long, and at least eight times, before it gives up.
  Time connect_patience = 0;
};

enum class Direction : std::uint8_t { kTransmit, kReceive };

// The operations that an Mx permits a peer.
namespace permit {
inline constexpr std::uint8_t kData = 1, kGet = 2, kFetchOp = 4, kAll = 7;
}

// One frame to send. The caller provides `head`; the Node fills the rest.
struct TxToken {
  VcId vc = kNoneId;
  RegionId region = kNoneId;  // kNoneId: nothing attached, no need to give the token back
  friend bool operator==(const TxToken&, const TxToken&) = default;
};
// Whether the station of a frame is there.
enum class Presence : std::uint8_t {
  kProven,  // it has proven that lately
  kNamed,   // a user has named it, or it was there
  kClaimed  // it has only asked, under an address that may be false
};
struct TxFrame {
  std::byte* head = nullptr;              // in: room for frame_room() bytes
  std::size_t head_length = 0;            // out: bytes of the frame in `head`
  Bytes attached;                         // out: user memory that follows `head` on the link
  TxToken token;                          // out: see Node::transmitted
  bool for_stranger = false;              // out: it answers a station that has proven nothing
  Presence presence = Presence::kProven;  // out: whether its station is there
  bool may_be_marked = false;             // out: instead of losing it, routers may mark it (ECN)
};

// A frame whose bytes from some place after its Schedule Header on lie elsewhere: one that a Node
// sent to itself, as transmit() returned it, or one that a link received so. The Node copies the
// attached bytes once, to the receiving user's memory.
struct LoopedFrame {
  Bytes head;
  Bytes attached;
  bool marked = false;  // a router has marked it, because its queue is long (ECN)
};

struct Event {
  enum class Kind : std::uint8_t {
    kNews,         // vc's channel is gathered and has a new header or state
    kWake,         // a user sleeps on vc's channel: wake its futex word
    kAcceptReady,  // endpoint has a connection to accept
    kStockLow,     // the listening endpoint has used a stocked channel
    kVcOver,       // the peer disconnected vc, or vc failed; its user still holds it
    kVcGone,       // the Node no longer uses vc's channel memory; `cookie` names it
    kRegionGone,   // the Node no longer uses region's memory
  };
  Kind kind;
  std::uint64_t id = kNoneId;  // VcId, EndpointId or RegionId
  std::uint64_t cookie = 0;    // kNews, kWake, kVcOver, kVcGone: the channel's cookie
};

enum class VcState : std::uint8_t {
  kConnecting,   // RC sent, waiting for CA
  kOpen,         // established
  kClosing,      // RD sent (after the last queued request), waiting for DA
  kPeerClosing,  // DA sent, waiting for DC
  kBothClosing,  // RD and DA sent
  kPeerClosed,   // disconnected by the peer; the user still holds it
  kFailed,       // given up; the user still holds it
  kAsked,        // an inspecting listener got the RC: the user decides
};

// Traffic of a connection: operations other than DATA, and user bytes.
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
  Time round_trip;       // smoothed; 0: not measured yet
  std::uint32_t peer_uport;
  OptionPayload peer_option;  // from the peer's RC, CA, refusal or RD
  bool passive;               // the peer requested the connection
  bool connectionless;        // the Port of a connectionless endpoint: no peer
  std::uint32_t uport;        // the listener's upper-layer port, here or at the peer
  // Its way is shared with others, and congestion controlled. nullopt: nobody has asked, because
  // there is no peer, or none that has shown that it is there.
  std::optional<bool> yields;
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
  // Call transmitted() for the tokens of these frames afterwards.
  void receive_looped(std::span<const LoopedFrame> burst, Time now);
  // As receive(). Each head ends with the Schedule Header, unless nothing is attached. The attached
  // bytes may change at any time, if the frame has no Cksum and no append: they are only copied.
  void receive_apart(std::span<const LoopedFrame> burst, Time now);
  std::size_t transmit(std::span<TxFrame> frames, Time now);
  void transmitted(const TxToken& token);
  // The same of so many frames that had one token.
  void transmitted(const TxToken& token, std::uint32_t frames);
  [[nodiscard]] Time next_deadline() const;
  void expire(Time now);
  // Call when nothing has arrived lately: wakes at once the users whose wake-up was delayed to save
  // wake-ups.
  void idle();
  bool next_event(Event& out);
  // The room that a TxFrame's `head` must have, in bytes.
  [[nodiscard]] std::size_t frame_room() const;

  // --- endpoints -------------------------------------------------------------------------------
  // `owner`: names the owner among those that share the Node.
  int open_endpoint(const EndpointConfig& config, EndpointId& out, std::uint64_t owner = 0);
  // Returns -EBUSY for sizes, ranges, port and key once memory is mapped or a connection exists.
  int configure(EndpointId endpoint, const EndpointConfig& config);
  int endpoint_config(EndpointId endpoint, EndpointConfig& out) const;
  // Ends listening. Connections and regions of the endpoint must be gone (-EBUSY).
  int close_endpoint(EndpointId endpoint);

  // --- memory ----------------------------------------------------------------------------------
  // Binds memory to consecutive Bufx entries from `base` on. Each piece is a whole number of
  // buffers; at most 16 pieces. The memory must stay readable (for kReceive also writable) until
  // kRegionGone.
  int map(EndpointId endpoint, Direction direction, std::uint32_t base,
          std::span<const MutableBytes> pieces, RegionId& out);
  // Disables the Bufx entries and every Mx on them at once. kRegionGone follows when no frame uses
  // the memory any more.
  int unmap(RegionId region);
  // Whether frames on their way out read the memory of a mapped region. False: no such region, too.
  [[nodiscard]] bool is_read(RegionId region) const;
  // table_bytes: size of the tables that map the endpoint's Bufx entries to memory. table_growth:
  // the most that a mapping would add to them. 0: no such endpoint.
  [[nodiscard]] std::size_t table_bytes(EndpointId endpoint) const;
  [[nodiscard]] std::size_t table_growth(EndpointId endpoint, Direction direction,
                                         std::uint32_t base,
                                         std::span<const MutableBytes> pieces) const;
  // `vc` kNoneId: valid on every connection of the region's endpoint.
  int alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out);
  int free_mx(EndpointId endpoint, std::uint16_t mx);

  // --- connections -----------------------------------------------------------------------------
  // A channel is zeroed memory laid out by ChannelGeometry. The Node uses it until kVcGone.
  int listen(EndpointId endpoint, std::uint32_t uport);
  // Its connections stay; accept() still returns those in the backlog.
  int unlisten(EndpointId endpoint);
  // Adds a channel for a future connection. A listener answers as many RCs as it has channels.
  int stock(EndpointId endpoint, std::byte* channel, std::uint64_t cookie);
  // Takes back a stocked channel when listening ends. False: none left.
  bool unstock(EndpointId endpoint, std::uint64_t& cookie);
  // -EAGAIN: the backlog is empty. If the endpoint inspects, the connection is in state kAsked.
  int accept(EndpointId endpoint, VcId& out);
  // The number of connections that wait for accept().
  [[nodiscard]] std::size_t backlog(EndpointId endpoint) const;
  // Decides on a connection in state kAsked; `option` goes to the peer. A refused connection ends
  // (kVcGone). -EISCONN: already decided. admit() after the time to decide returns -ETIMEDOUT, or
  // -ECONNABORTED if the peer gave up.
  int admit(VcId vc, const OptionPayload& option, Time now);
  int refuse(VcId vc, const OptionPayload& option, Time now);
  int connect(EndpointId endpoint, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
              std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option = {});
  // Gives a connectionless endpoint its Port, Key and channel. From then on anybody who knows Port
  // and Key reaches it. One per endpoint (-EBUSY). Use it like a connection: kick, close, vc_info
  // (whose remote part is empty).
  int open_port(EndpointId endpoint, std::byte* channel, std::uint64_t cookie, VcId& out, Time now);
  // Goes on in other memory, which the user sees from now on: it has not seen the present one,
  // which the Node uses no more. `channel` is as large, and zeroed. -EINPROGRESS: call it again.
  // `copied`: how many headers have been so far, at first 0.
  int move_channel(VcId vc, std::byte* channel, std::uint32_t& copied);
  // Sends the queued requests, then disconnects; kVcGone follows. `at_once`: drops the queued
  // requests. `option`: sent to the peer's user with the RD.
  int close(VcId vc, bool at_once, Time now, const OptionPayload& option = {});
  int vc_info(VcId vc, VcInfo& out) const;
  // Brings what the requests of vc use into the caches. vc need not exist.
  void fetch_ahead(VcId vc) const;
  // Call after the user has put requests into vc's transmit queue.
  void kick(VcId vc);

  // --- what happened ---------------------------------------------------------------------------
  [[nodiscard]] const Counters& counters() const;
  // The data plane adds its own counts here, e.g. frames of another EtherType.
  [[nodiscard]] Counters& counters();
  [[nodiscard]] std::size_t vc_count() const;
  // The connection with the lowest local Port above `port`; kNoneId: none. Callers can iterate with
  // it while connections come and go.
  [[nodiscard]] VcId vc_after(std::uint16_t port) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp
