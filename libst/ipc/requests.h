// SPDX-License-Identifier: BSD-3-Clause
// Requests of a client and replies of a service: their layouts, the text in them, and the
// conversion of the engine's types to and from them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stp/node/node.h"

namespace stp::service {

// Text in a message: truncated if too long, and always terminated by a zero.
template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const auto length = std::min(text.size(), N - 1);
  std::copy_n(text.begin(), length, field);
  std::fill(field + length, field + N, '\0');
}

// Text from another process may lack the zero.
template <std::size_t N>
std::string_view text_of(const char (&field)[N]) {
  return {field, static_cast<std::size_t>(std::find(field, field + N, '\0') - field)};
}

// Requests of a client and replies of a service. One request, one reply, both of fixed size. Inside
// a process they are passed by reference; to stpd they are datagrams of a SOCK_SEQPACKET socket,
// with memory as file descriptors. stpd trusts no field of a request.
inline constexpr std::uint32_t kProtocolVersion = 11;
inline constexpr std::uint32_t kMaxSegments = 16, kMaxPieces = 16;
inline constexpr std::uint32_t kMaxBudgets = 16;  // as many as Resource has, and some spare
inline constexpr char kSocketDirectory[] = "/run/stpd/";
inline constexpr char kDefaultSocket[] = "/run/stpd/stpd.sock";

enum class RequestKind : std::uint32_t {
  // -> facts of the link, shards, value: the shard to begin with; fds: client page, bell eventfd.
  // A program sends it once to each shard that it uses, and gets the page and the bell of that
  // shard. From the time when it connects it is a client of shard 0. It maps what is in fds, then
  // sends kMapped, for the page and for each channel.
  kHello = 1,
  kOpenEndpoint,    // config -> endpoint (and config as it became)
  kConfigure,       // endpoint, config
  kEndpointConfig,  // endpoint -> config
  kCloseEndpoint,   // endpoint; -EBUSY while connections or regions live
  kListen,          // endpoint, uport
  // endpoint -> vc, channel, fds: channel memory, and as kVcInfo; -EAGAIN: sleep on page events
  kAccept,
  kConnect,  // endpoint, mac, uport, option -> vc, channel, fds: channel memory (state:
             // kConnecting)
  kBacklog,  // endpoint -> value: connections waiting to be accepted
  kDecide,   // vc, admit, option: accepts or rejects a connection that a peer asks for
  // connectionless endpoint -> vc, channel, fds: channel memory; -EBUSY: it has one
  kOpenPort,
  kVcInfo,   // vc -> info, text: how users name the peer's station (port::Port::name_of_station)
  kClose,    // vc, at_once, option; at the end the channel's state becomes kClosed (or kFailed)
  kMap,      // endpoint, direction, base, segments (+ fds) -> region
  kUnmap,    // region; -EINPROGRESS while frames still read it: retry
  kAllocMx,  // region, vc or 0, permissions -> mx
  kFreeMx,   // endpoint, mx
  // ipv4, or if it is 0 ip and ip_scope; udp_port (0: the usual one) -> mac; -EAGAIN: retry later;
  // -EHOSTUNREACH: the link cannot reach such an address
  kResolve,
  kStats,     // -> next counter name and value from `index` on; -ENOENT: no more
  kUnlisten,  // endpoint: disconnects the connections waiting to be accepted
  // mac (0: any) -> text: trouble of the link, or of what it sends to that station, from character
  // `index` on, what fits; "": no more
  kTrouble,
  kLinkState,  // -> state (port::LinkState), value: how often it has changed, age, mtu, megabits,
               // ipv4
  kSettle,     // region; 0: no frame on its way out reads it; -EINPROGRESS: some do, retry
  // vc, or kNoneId for the client page: the program has mapped what it was given with that reply,
  // and has allocated all of its pages (-EFAULT: it has not). The service uses it from the reply to
  // this request on. The program can take no page of it away any more, nor map it for writing once
  // more.
  kMapped,
  // Requests of stpctl (admin.h tells who sees what). Lists are read by cursor, starting at 0. An
  // answer without an id shows nothing and only gives the next cursor. -ENOENT: end of the list.
  kAdminLink = 0x100,  // -> the link, its state (port::LinkState), shards, totals of this one
  kAdminConnection,    // cursor -> a connection
  kAdminRegion,        // cursor -> a mapped region
  kTraceStart,         // trace; fd: a regular file, open for writing
  kTraceStop,          // records no more frames; the file is still being written until `finished`
  kTraceStatus,        // -> the running trace, or the last one; -ENOENT: there was none
  kAdminUser,          // cursor -> a user, and what it uses of each budget
  kAdminSteering,      // -> the steering of the link, which shard 0 knows; "": it has one shard
};

// EndpointConfig in a fixed layout.
struct WireConfig {
  std::uint32_t connectionless, bufsize, max_stu, port, key;
  std::uint32_t rx_bufx_base, rx_bufx_count, tx_bufx_base, tx_bufx_count;
  std::uint32_t slots, credits, checksum, keep_alive, recover, inspect;
  std::uint32_t connect_patience;  // milliseconds
};

// OptionPayload in a fixed layout.
struct WireOption {
  std::uint32_t length;  // 0 or wire::kOptionSize
  std::byte bytes[wire::kOptionSize];
};

struct Segment {
  std::uint32_t fd_index;  // index into the message's descriptors
  std::uint32_t reserved;
  std::uint64_t offset;  // within the file: a multiple of the page size
  std::uint64_t length;
};

// One piece of a region: its position in the concatenated segments.
struct Piece {
  std::uint64_t at, length;
};

// What to trace, and for how long.
struct TraceOrder {
  std::uint64_t max_frames;   // 0: no limit
  std::uint64_t nanoseconds;  // 0: no limit
  std::uint32_t everything;   // 1: all frames on the link; 0: STP and ARP only
  std::uint32_t stays;        // 1: the trace continues after the client that ordered it is gone
  std::uint32_t snap;         // keep so many bytes of each frame; 0: all
  std::uint32_t reserved;
  std::uint64_t buffer;  // bytes of frames that the file may be behind; 0: the default
};

// Of each frame a trace keeps at least the head of one with a tag.
inline constexpr std::uint32_t kLeastSnap = 58, kMostSnap = 262'144;
inline constexpr std::uint64_t kLeastTraceBuffer = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostTraceBuffer = std::uint64_t{1} << 30;

// One entry of a list that stpctl shows; further fields of it are in the reply.
struct AdminEntry {
  std::uint64_t next;      // the cursor of the entry after this one
  std::uint32_t pid, uid;  // its owner
  // kAdminConnection
  std::uint32_t uport, passive, accepted, credit;
  std::uint64_t round_trip;  // ns
  std::uint64_t rx_control, rx_data_bytes, tx_control, tx_data_bytes;
  // kAdminRegion
  std::uint64_t bytes;
  std::uint32_t direction, base, count, mx_count, bufsize, unmapping;
  // kAdminLink
  std::uint32_t clients, connections, regions, link_up;
  std::uint32_t administrator;  // 1: the asker may see objects of others
  // Trace
  std::uint32_t finished;        // 1: all frames have been written to the file
  std::int32_t error;            // why the file ends early
  std::uint32_t connectionless;  // kAdminConnection: 1: an endpoint without connections
  std::uint64_t frames, dropped, written_bytes;
  char device[64];
  char driver[32];
  char trouble[320];  // kAdminLink: Port::trouble. kAdminSteering: Port::steering
  // kAdminUser: by Resource. An entry with shown == 0 is of a user that the asker may not see.
  std::uint32_t shown, trusted;  // trusted: limited by the totals only
  std::uint64_t used[kMaxBudgets];
  std::uint64_t most[kMaxBudgets];  // what it may hold at present; all bits set: not limited
};

struct Request {
  std::uint32_t version;
  RequestKind kind;
  std::uint64_t endpoint, vc, region;
  WireConfig config;
  std::uint64_t mac;  // MacAddr::to_u64
  std::uint32_t uport;
  std::uint32_t ipv4;      // host order
  std::uint8_t ip[16];     // an IPv6 address, in network order
  std::uint32_t ip_scope;  // the interface of a link-local one
  std::uint32_t udp_port;
  std::uint32_t direction;  // stp::Direction
  std::uint32_t base;       // first Bufx
  std::uint32_t permissions;
  std::uint32_t mx;
  std::uint32_t at_once;
  std::uint32_t admit;
  WireOption option;
  std::uint32_t index;
  // kMap: segments are whole pages, concatenated; pieces are ranges of them and make up the region.
  std::uint32_t segment_count, piece_count;
  std::uint32_t shard;  // number of the shard that the request is for, from 0
  std::uint32_t reserved;
  Piece pieces[kMaxPieces];
  Segment segments[kMaxSegments];
  std::uint64_t cursor;  // kAdmin*
  TraceOrder trace;      // kTraceStart
};

struct Reply {
  std::uint32_t version;
  std::int32_t result;  // 0 or a negative errno
  std::uint64_t endpoint, vc, region;
  WireConfig config;
  std::uint64_t mac;
  std::uint32_t mx;
  std::uint32_t channel;       // bell number of vc
  std::uint64_t channel_size;  // bytes to map
  // kHello, kLinkState, kAdminLink
  std::uint32_t max_stu, mtu, ipv4, megabits, shards;
  // kHello: as in port::PortInfo
  std::uint32_t udp_port, peer_udp_port, ipv6, one_address, interface;
  // kVcInfo
  std::uint32_t state, error;
  std::uint32_t local_port, remote_port, local_key, remote_key;
  std::uint32_t local_bufsize, remote_bufsize, local_max_stu, remote_max_stu;
  std::uint32_t local_slots, remote_slots;
  std::uint32_t peer_uport;
  WireOption option;  // the option of the peer's RC or CA
  // kHello: the link. kTrouble: the trouble. kVcInfo, kAdminConnection: the
  // peer. kStats: a counter. -EDQUOT: the exhausted resource,
  // its total, and the remedy.
  char text[128];
  std::uint64_t value;
  std::uint64_t age;  // kLinkState: ns since the link came into its state
  AdminEntry admin;   // kAdmin*, kTrace*
};

// Converts the engine's types to and from the fixed layouts of messages.

// The longest connect_patience, in milliseconds: an hour.
inline constexpr std::uint32_t kLongestPatience = 3'600'000;

// Returns 0, or -EINVAL for values that no client library sends. The Node checks the rest.
int from_wire(const WireConfig& wire, EndpointConfig& out);
WireConfig to_wire(const EndpointConfig& config);

int from_wire(const WireOption& wire, OptionPayload& out);
WireOption to_wire(const OptionPayload& option);

}  // namespace stp::service
