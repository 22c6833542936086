// SPDX-License-Identifier: BSD-3-Clause
// What a client asks of a service and what it gets back. One request, one reply, both of fixed
// size: they are passed by reference inside a process and as datagrams of a SOCK_SEQPACKET socket
// to stpd, memory going along as file descriptors. stpd checks every field as hostile.
#pragma once

#include <cstdint>

#include "stp/node/node.h"

namespace stp::service {

inline constexpr std::uint32_t kProtocolVersion = 5;
inline constexpr std::uint32_t kMaxSegments = 16, kMaxPieces = 16;
inline constexpr std::uint32_t kMaxBudgets = 16;  // as many as Resource has, and some to come
inline constexpr char kSocketDirectory[] = "/run/stpd/";
inline constexpr char kDefaultSocket[] = "/run/stpd/stpd.sock";

enum class RequestKind : std::uint32_t {
  kHello = 1,       // -> link facts; fds: client page, bell eventfd
  kOpenEndpoint,    // config -> endpoint (and config as it became)
  kConfigure,       // endpoint, config
  kEndpointConfig,  // endpoint -> config
  kCloseEndpoint,   // endpoint; -EBUSY while connections or regions live
  kListen,          // endpoint, uport
  // endpoint -> vc, channel, fds: channel memory, and as kVcInfo; -EAGAIN: sleep on page events
  kAccept,
  kConnect,  // endpoint, mac, uport, option -> vc, channel, fds: channel memory (state:
             // kConnecting)
  kBacklog,  // endpoint -> value: connections that wait to be accepted
  kDecide,   // vc, admit, option: answers a connection that was asked for
  // connectionless endpoint -> vc, channel, fds: channel memory; -EBUSY: it has one
  kOpenPort,
  kVcInfo,     // vc -> info
  kClose,      // vc, at_once, option; the channel's state becomes kClosed (or kFailed) in the end
  kMap,        // endpoint, direction, base, segments (+ fds) -> region
  kUnmap,      // region; -EINPROGRESS while frames still read it: ask again
  kAllocMx,    // region, vc or 0, permissions -> mx
  kFreeMx,     // endpoint, mx
  kResolve,    // ipv4 -> mac; -EAGAIN: ask again in a while
  kStats,      // -> next counter name and value from `index` on; -ENOENT: no more
  kUnlisten,   // endpoint: who waits to be accepted is disconnected
  kTrouble,    // -> what troubles the link, as much as fits, from character `index` on; "": no more
  kLinkState,  // -> state (port::LinkState), value: how often it has changed, mtu, ipv4
  // What stpctl asks (admin.h says who sees what). Lists go by cursor, 0 first; an
  // answer without an id has nothing to show but the next cursor; -ENOENT: no more.
  kAdminLink =
      0x100,  // -> the link, its state (port::LinkState), and how much of everything there is
  kAdminConnection,  // cursor -> a connection
  kAdminRegion,      // cursor -> a mapped region
  kTraceStart,       // trace; fd: a regular file, open for writing
  kTraceStop,        // no more frames; what was seen is still being written until `finished`
  kTraceStatus,      // -> the trace that runs, or the last one; -ENOENT: there was none
  kAdminUser,        // cursor -> a user, and what it has of each budget
};

// EndpointConfig in a fixed form.
struct WireConfig {
  std::uint32_t connectionless, bufsize, max_stu, port, key;
  std::uint32_t rx_bufx_base, rx_bufx_count, tx_bufx_base, tx_bufx_count;
  std::uint32_t slots, credits, checksum, keep_alive, recover, inspect;
  std::uint32_t connect_patience;  // milliseconds
};

// OptionPayload in a fixed form.
struct WireOption {
  std::uint32_t length;  // 0 or wire::kOptionSize
  std::byte bytes[wire::kOptionSize];
};

struct Segment {
  std::uint32_t fd_index;  // which of the message's descriptors
  std::uint32_t reserved;
  std::uint64_t offset;  // within it: a multiple of the page size
  std::uint64_t length;
};

// Where one piece of a region lies in the run of all segments.
struct Piece {
  std::uint64_t at, length;
};

// What to trace, and how long.
struct TraceOrder {
  std::uint64_t max_frames;   // 0: no bound
  std::uint64_t nanoseconds;  // 0: no bound
  std::uint32_t everything;   // 1: all frames that the link sees; 0: STP and ARP
  std::uint32_t stays;        // 1: goes on when the client that ordered it has gone
};

// One entry of a list that stpctl shows, beside what other replies say of it.
struct AdminEntry {
  std::uint64_t next;      // the cursor of the entry after this one
  std::uint32_t pid, uid;  // whose it is
  // kAdminConnection
  std::uint32_t uport, passive, accepted, credit;
  std::uint64_t round_trip;  // ns
  std::uint64_t rx_control, rx_data_bytes, tx_control, tx_data_bytes;
  // kAdminRegion
  std::uint64_t bytes;
  std::uint32_t direction, base, count, mx_count, bufsize, unmapping;
  // kAdminLink
  std::uint32_t clients, connections, regions, link_up;
  std::uint32_t administrator;  // 1: the asker sees what is others'
  // Trace
  std::uint32_t finished;        // everything is in the file
  std::int32_t error;            // why the file ends early
  std::uint32_t connectionless;  // kAdminConnection: 1: an endpoint without connections
  std::uint64_t frames, dropped, written_bytes;
  char device[64];
  char driver[32];
  char trouble[320];  // kAdminLink: Port::trouble
  // kAdminUser: by Resource. An entry that shows nothing is of a user whom the asker may not see.
  std::uint32_t shown, trusted;  // trusted: held by the totals only
  std::uint64_t used[kMaxBudgets];
  std::uint64_t most[kMaxBudgets];  // that it may have now; all bits set: no bound
};

struct Request {
  std::uint32_t version;
  RequestKind kind;
  std::uint64_t endpoint, vc, region;
  WireConfig config;
  std::uint64_t mac;  // MacAddr::to_u64
  std::uint32_t uport;
  std::uint32_t ipv4;       // host order
  std::uint32_t direction;  // stp::Direction
  std::uint32_t base;       // first Bufx
  std::uint32_t permissions;
  std::uint32_t mx;
  std::uint32_t at_once;
  std::uint32_t admit;
  WireOption option;
  std::uint32_t index;
  // kMap: segments are whole pages, side by side; pieces lie in them and make up the region.
  std::uint32_t segment_count, piece_count;
  std::uint64_t reserved;
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
  // kHello
  std::uint32_t max_stu, mtu, ipv4, reserved;
  // kVcInfo
  std::uint32_t state, error;
  std::uint32_t local_port, remote_port, local_key, remote_key;
  std::uint32_t local_bufsize, remote_bufsize, local_max_stu, remote_max_stu;
  std::uint32_t local_slots, remote_slots;
  std::uint32_t peer_uport;
  WireOption option;  // what came along with the peer's RC or CA
  // kHello: the link; kTrouble; kStats: a counter; -EDQUOT: what is used up, how much of it there
  // is, and the remedy
  char text[128];
  std::uint64_t value;
  AdminEntry admin;  // kAdmin*, kTrace*
};

}  // namespace stp::service
