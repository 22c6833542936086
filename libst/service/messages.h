// SPDX-License-Identifier: BSD-3-Clause
// What a client asks of a service and what it gets back. One request, one reply, both of fixed
// size: they are passed by reference inside a process and as datagrams of a SOCK_SEQPACKET socket
// to stpd, memory going along as file descriptors. stpd checks every field as hostile.
#pragma once

#include <cstdint>

#include "stp/node.h"

namespace stp::service {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kMaxSegments = 16;
inline constexpr char kDefaultSocket[] = "/run/stpd/stpd.sock";

enum class RequestKind : std::uint32_t {
  kHello = 1,       // -> link facts; fds: client page, bell eventfd
  kOpenEndpoint,    // config -> endpoint (and config as it became)
  kConfigure,       // endpoint, config
  kEndpointConfig,  // endpoint -> config
  kCloseEndpoint,   // endpoint; -EBUSY while connections or regions live
  kListen,          // endpoint, uport
  kUnlisten,        // endpoint: who waits to be accepted is disconnected
  kAccept,          // endpoint -> vc, channel, fds: channel memory; -EAGAIN: sleep on page events
  kConnect,         // endpoint, mac, uport -> vc, channel, fds: channel memory (state: kConnecting)
  kVcInfo,          // vc -> info
  kClose,           // vc, at_once; the channel's state becomes kClosed (or kFailed) in the end
  kMap,             // endpoint, direction, base, segments (+ fds) -> region
  kUnmap,           // region; -EINPROGRESS while frames still read it: ask again
  kAllocMx,         // region, vc or 0, permissions -> mx
  kFreeMx,          // endpoint, mx
  kResolve,         // ipv4 -> mac; -EAGAIN: ask again in a while
  kStats,           // -> next counter name and value from `index` on; -ENOENT: no more
};

// EndpointConfig in a fixed form.
struct WireConfig {
  std::uint32_t connectionless, bufsize, max_stu, port, key;
  std::uint32_t rx_bufx_base, rx_bufx_count, tx_bufx_base, tx_bufx_count;
  std::uint32_t slots, credits, checksum, keep_alive, recover;
};

struct Segment {
  std::uint32_t fd_index;  // which of the message's descriptors
  std::uint32_t reserved;
  std::uint64_t offset;  // within it: a multiple of the page size
  std::uint64_t length;
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
  std::uint32_t index;
  // kMap: the region lies `lead` bytes into the first segment and is `length` bytes long; segments
  // are whole pages.
  std::uint64_t lead, length;
  std::uint32_t segment_count, reserved;
  Segment segments[kMaxSegments];
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
  // kHello: the link; kStats: a counter
  char text[128];
  std::uint64_t value;
};

}  // namespace stp::service
