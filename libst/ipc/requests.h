// SPDX-License-Identifier: BSD-3-Clause
// The requests of programs and of stpctl: one table says for each what it is and who may ask it.
// From the table come the kinds, the sizes of messages, the check whether one makes sense, and the
// dispatch. A request and its reply are a struct each, of a fixed layout. Inside a process they are
// passed in memory; to stpd they are datagrams of a SOCK_SEQPACKET socket (socket.h), with memory
// as file descriptors. stpd trusts no field of a request.
//
// To add a request: a struct in namespace ask, a row in STP_REQUESTS, and the function that answers
// it, which the compiler then misses: in service.cpp, or in inspection.cpp if it only watches.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "stp/base/assert.h"
#include "stp/node/node.h"

namespace stp::ipc {

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

// Of all that follows. Programs and stpd of one machine have the same.
inline constexpr std::uint32_t kProtocolVersion = 15;
inline constexpr std::uint32_t kMaxSegments = 16, kMaxPieces = 16;
inline constexpr std::size_t kMaxFds = kMaxSegments;  // in a valid message
inline constexpr std::uint32_t kMaxBudgets = 16;      // as many as Resource has, and some spare
inline constexpr std::size_t kTextSize = 128, kLongTextSize = 320;
inline constexpr char kSocketDirectory[] = "/run/stpd/";
inline constexpr char kDefaultSocket[] = "/run/stpd/stpd.sock";

// ---- what several requests have

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
// With the headers of IPv6 and UDP in front of that of STP: more than asked for, if need be.
inline constexpr std::uint32_t kLeastSnapOverIp = 102;
inline constexpr std::uint64_t kLeastTraceBuffer = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostTraceBuffer = std::uint64_t{1} << 30;

// How a trace stands.
struct TraceState {
  std::uint64_t frames, dropped, written_bytes;
  std::uint32_t finished;  // 1: all frames have been written to the file
  std::int32_t error;      // why the file ends early
};

// A channel that a program was given: its memory goes along.
struct GivenChannel {
  std::uint64_t vc;
  std::uint64_t size;  // bytes to map
  std::uint32_t bell;
  std::uint32_t reserved;
};

// A Virtual Connection.
struct VcFacts {
  std::uint64_t vc, endpoint;
  std::uint64_t mac;           // of the peer: MacAddr::to_u64
  std::uint32_t state, error;  // VcState
  std::uint32_t local_port, remote_port, local_key, remote_key;
  std::uint32_t local_bufsize, remote_bufsize, local_max_stu, remote_max_stu;
  std::uint32_t local_slots, remote_slots;
  std::uint32_t peer_uport;
  WireOption option;  // of the peer's RC or CA
};

struct Nothing {};

// ---- the requests
//
// Errors that several have: -EBADF: no such object of this client; -EINVAL: a value that no client
// library sends; -EDQUOT, -EACCES: the Refusal says why.

namespace ask {

// A program sends this once to each shard that it uses, and gets the page and the bell (an eventfd)
// of that shard. From the time when it connects it is a client of shard 0. It
// maps the page, then sends Mapped.
struct Hello {
  struct Reply {
    std::uint64_t mac;  // MacAddr::to_u64
    std::uint32_t max_stu, mtu, ipv4, shards;
    std::uint32_t first;  // the shard to begin with
    // As in port::PortInfo.
    std::uint32_t udp_port, peer_udp_port, internet, ipv6, one_address;
    char link[kTextSize];
  };
};

// The reply has the config as it became.
struct OpenEndpoint {
  WireConfig config;
  struct Reply {
    std::uint64_t endpoint;
    WireConfig config;
  };
};

struct Configure {
  std::uint64_t endpoint;
  WireConfig config;
  struct Reply {
    WireConfig config;
  };
};

struct EndpointConfig {
  std::uint64_t endpoint;
  struct Reply {
    WireConfig config;
  };
};

// -EBUSY while connections or regions live.
struct CloseEndpoint {
  std::uint64_t endpoint;
  using Reply = Nothing;
};

struct Listen {
  std::uint64_t endpoint;
  std::uint32_t uport;
  std::uint32_t reserved;
  using Reply = Nothing;
};

// Disconnects the connections that wait to be accepted.
struct Unlisten {
  std::uint64_t endpoint;
  using Reply = Nothing;
};

// -EAGAIN: none waits; sleep on page events. The program maps the channel, then sends Mapped.
struct Accept {
  std::uint64_t endpoint;
  struct Reply {
    GivenChannel channel;
    VcFacts facts;
  };
};

// The connection is in the state kConnecting. The program maps the channel, then sends Mapped.
struct Connect {
  std::uint64_t endpoint;
  std::uint64_t mac;  // MacAddr::to_u64
  std::uint32_t uport;
  WireOption option;
  struct Reply {
    GivenChannel channel;
  };
};

// How many connections wait to be accepted.
struct Backlog {
  std::uint64_t endpoint;
  struct Reply {
    std::uint64_t waiting;
  };
};

// Accepts or rejects a connection that a peer asks for.
struct Decide {
  std::uint64_t vc;
  std::uint32_t admit;
  WireOption option;
  using Reply = Nothing;
};

// Of a connectionless endpoint. -EBUSY: its Port is open. The program maps the channel, then sends
// Mapped.
struct OpenPort {
  std::uint64_t endpoint;
  struct Reply {
    GivenChannel channel;
  };
};

struct VcInfo {
  std::uint64_t vc;
  struct Reply {
    VcFacts facts;
    char peer[kTextSize];  // how users name the peer's station (port::Port::name_of_station)
  };
};

// At the end the channel's state becomes kClosed (or kFailed).
struct Close {
  std::uint64_t vc;
  std::uint32_t at_once;
  WireOption option;
  using Reply = Nothing;
};

// Segments are whole pages of the descriptors that go along, concatenated; pieces are ranges of
// them and make up the region. Within a process there are neither. Without descriptors, stpd maps
// nothing and makes no region: it says whether quotas and budgets permit as much.
struct Map {
  std::uint64_t endpoint;
  std::uint32_t direction;  // stp::Direction
  std::uint32_t base;       // first Bufx
  std::uint32_t segment_count, piece_count;
  Piece pieces[kMaxPieces];
  Segment segments[kMaxSegments];
  struct Reply {
    std::uint64_t region;
  };
};

// -EINPROGRESS while frames still read it: ask again.
struct Unmap {
  std::uint64_t region;
  using Reply = Nothing;
};

// 0: no frame on its way out reads the region; -EINPROGRESS: some do, ask again.
struct Settle {
  std::uint64_t region;
  using Reply = Nothing;
};

struct AllocMx {
  std::uint64_t region;
  std::uint64_t vc;  // 0: for all connections of the endpoint
  std::uint32_t permissions;
  std::uint32_t reserved;
  struct Reply {
    std::uint32_t mx;
  };
};

struct FreeMx {
  std::uint64_t endpoint;
  std::uint32_t mx;
  std::uint32_t reserved;
  using Reply = Nothing;
};

// The service decides what the address means where it runs: whether it is one of its own host, and
// which interface a zone names. The program may be in another network namespace. -EAGAIN: ask again
// later; -EHOSTUNREACH: the link cannot reach such an address; -ENODEV: the service's host has no
// interface of that name.
struct Resolve {
  std::uint32_t ipv4;      // host order; 0: see ip
  std::uint8_t ip[16];     // an IPv6 address, in network order
  std::uint32_t udp_port;  // 0: the usual one
  char zone[kTextSize];    // the interface of a link-local one, by its name; "": none
  struct Reply {
    std::uint64_t mac;
  };
};

// Trouble of the link, or of what it sends to that station, from character `from` on, what fits;
// "": no more.
struct Trouble {
  std::uint64_t mac;  // 0: any
  std::uint64_t from;
  struct Reply {
    std::uint32_t gone;  // 1: somebody reports that nothing gets to that station
    char text[kTextSize];
  };
};

struct LinkState {
  struct Reply {
    std::uint64_t changes;  // how often the state has changed
    std::uint64_t age;      // ns since the link came into it
    std::uint32_t state;    // port::LinkState
    std::uint32_t mtu, megabits, ipv4;
  };
};

// The program has mapped what it was given, and has allocated all of its pages (-EFAULT: it has
// not). The service uses it from the reply to this request on. The program can take no page of it
// away any more, nor map it for writing once more.
struct Mapped {
  std::uint64_t vc;  // kNoneId: the client page
  using Reply = Nothing;
};

// The counter at that place of the list; -ENOENT: there are no more.
struct Stats {
  std::uint64_t index;
  struct Reply {
    std::uint64_t value;
    char name[kTextSize];
  };
};

// Requests of stpctl. Lists are read by cursor, starting at 0. An answer without an id shows
// nothing and only gives the next cursor. -ENOENT: end of the list.

// The link, and totals of this shard.
struct AdminLink {
  struct Reply {
    std::uint64_t mac;
    std::uint32_t max_stu, mtu, ipv4, shards;
    std::uint32_t state;  // port::LinkState
    std::uint32_t link_up;
    std::uint32_t clients, connections, regions;
    std::uint32_t administrator;  // 1: the asker may see objects of others
    char link[kTextSize];
    char device[64];
    char driver[32];
    char trouble[kLongTextSize];  // Port::trouble, and what stpd adds
  };
};

struct AdminConnection {
  static constexpr std::uint32_t kNotAsked = 2;  // nobody knows that yet
  std::uint64_t cursor;
  struct Reply {
    std::uint64_t next;
    VcFacts facts;           // without Keys and option
    std::uint32_t pid, uid;  // its owner
    std::uint32_t uport, passive, accepted, credit;
    std::uint32_t connectionless;  // 1: an endpoint without connections
    std::uint32_t yields;          // 1: congestion is controlled on its way; kNotAsked
    std::uint64_t round_trip;      // ns; 0: not measured yet
    std::uint64_t rx_control, rx_data_bytes, tx_control, tx_data_bytes;
    char peer[kTextSize];  // as in VcInfo
  };
};

struct AdminRegion {
  std::uint64_t cursor;
  struct Reply {
    std::uint64_t next;
    std::uint64_t region, endpoint, bytes;
    std::uint32_t pid, uid;  // its owner
    std::uint32_t direction, base, count, mx_count, bufsize, unmapping;
  };
};

// A user, and what it uses of each budget, by Resource.
struct AdminUser {
  std::uint64_t cursor;
  struct Reply {
    std::uint64_t next;
    std::uint32_t shown;  // 0: the asker may not see this user
    std::uint32_t uid;
    std::uint32_t trusted;  // limited by the totals only
    std::uint32_t reserved;
    std::uint64_t used[kMaxBudgets];
    std::uint64_t most[kMaxBudgets];  // what it may hold at present; all bits set: not limited
  };
};

// Port::steering, which shard 0 knows; "": the link has one shard.
struct AdminSteering {
  struct Reply {
    char steering[kLongTextSize];
  };
};

// Into a regular file, open for writing, that goes along.
struct TraceStart {
  TraceOrder trace;
  using Reply = Nothing;
};

// Records no more frames; the file is still being written until `finished`.
struct TraceStop {
  using Reply = Nothing;
};

// The running trace, or the last one; -ENOENT: there was none.
struct TraceStatus {
  struct Reply {
    TraceState trace;
  };
};

}  // namespace ask

// ---- the table

// Who may ask: programs that use the link; also who only watches, and then needs no place among
// them (programs learn sums that identify nobody and what belongs to their own user, administrators
// all but Keys and addresses of memory); only administrators, because frames hold the data of all
// users. Administrators are root, the user that the service runs as, and members of the group that
// the operator has configured.
enum class Who { kProgram, kWatcher, kAdministrator };
// Who answers: any shard; one to which the program has said hello; or whoever owns the service.
enum class Where { kAnyShard, kItsShard, kDaemon };

// A request's name (of its struct, and with a k of its kind), least and most descriptors that go
// along with it, descriptors that go along with its reply, who may ask, who answers.
#define STP_REQUESTS(X)                            \
  X(Hello, 0, 0, 2, kProgram, kAnyShard)           \
  X(OpenEndpoint, 0, 0, 0, kProgram, kItsShard)    \
  X(Configure, 0, 0, 0, kProgram, kItsShard)       \
  X(EndpointConfig, 0, 0, 0, kProgram, kItsShard)  \
  X(CloseEndpoint, 0, 0, 0, kProgram, kItsShard)   \
  X(Listen, 0, 0, 0, kProgram, kItsShard)          \
  X(Unlisten, 0, 0, 0, kProgram, kItsShard)        \
  X(Accept, 0, 0, 1, kProgram, kItsShard)          \
  X(Connect, 0, 0, 1, kProgram, kItsShard)         \
  X(Backlog, 0, 0, 0, kProgram, kItsShard)         \
  X(Decide, 0, 0, 0, kProgram, kItsShard)          \
  X(OpenPort, 0, 0, 1, kProgram, kItsShard)        \
  X(VcInfo, 0, 0, 0, kProgram, kItsShard)          \
  X(Close, 0, 0, 0, kProgram, kItsShard)           \
  X(Map, 0, kMaxFds, 0, kProgram, kItsShard)       \
  X(Unmap, 0, 0, 0, kProgram, kItsShard)           \
  X(Settle, 0, 0, 0, kProgram, kItsShard)          \
  X(AllocMx, 0, 0, 0, kProgram, kItsShard)         \
  X(FreeMx, 0, 0, 0, kProgram, kItsShard)          \
  X(Resolve, 0, 0, 0, kProgram, kItsShard)         \
  X(Trouble, 0, 0, 0, kProgram, kItsShard)         \
  X(LinkState, 0, 0, 0, kProgram, kItsShard)       \
  X(Mapped, 0, 0, 0, kProgram, kItsShard)          \
  X(Stats, 0, 0, 0, kWatcher, kAnyShard)           \
  X(AdminLink, 0, 0, 0, kWatcher, kAnyShard)       \
  X(AdminConnection, 0, 0, 0, kWatcher, kAnyShard) \
  X(AdminRegion, 0, 0, 0, kWatcher, kAnyShard)     \
  X(AdminUser, 0, 0, 0, kWatcher, kAnyShard)       \
  X(AdminSteering, 0, 0, 0, kWatcher, kAnyShard)   \
  X(TraceStart, 1, 1, 0, kAdministrator, kDaemon)  \
  X(TraceStop, 0, 0, 0, kAdministrator, kDaemon)   \
  X(TraceStatus, 0, 0, 0, kAdministrator, kDaemon)

enum class RequestKind : std::uint32_t {
  kNone,
#define STP_KIND(Name, ...) k##Name,
  STP_REQUESTS(STP_KIND)
#undef STP_KIND
};

template <typename R>
inline constexpr auto kKindOf = RequestKind::kNone;
#define STP_KIND_OF(Name, ...) \
  template <>                  \
  inline constexpr auto kKindOf<ask::Name> = RequestKind::k##Name;
STP_REQUESTS(STP_KIND_OF)
#undef STP_KIND_OF

template <typename R>
concept Asked = (kKindOf<R> != RequestKind::kNone);

// Bytes in a message.
template <typename T>
inline constexpr std::size_t kSizeOf = std::is_empty_v<T> ? 0 : sizeof(T);

struct RequestRule {
  RequestKind kind;
  std::string_view name;
  std::size_t size, reply_size;  // without the heads
  std::size_t least_files, most_files, reply_files;
  Who who;
  Where where;
};

inline constexpr std::array kRequests = std::to_array<RequestRule>({
#define STP_RULE(Name, least, most, with_reply, who, where)                                    \
  {RequestKind::k##Name, #Name,    kSizeOf<ask::Name>, kSizeOf<ask::Name::Reply>, least, most, \
   with_reply,           Who::who, Where::where},
    STP_REQUESTS(STP_RULE)
#undef STP_RULE
});

// nullptr: there is no such request.
constexpr const RequestRule* rule_of(RequestKind kind) {
  const auto index = static_cast<std::size_t>(kind) - 1;  // kNone: beyond the end
  return index < kRequests.size() ? &kRequests[index] : nullptr;
}
template <Asked R>
inline constexpr RequestRule kRuleOf = *rule_of(kKindOf<R>);

// ---- messages

struct RequestHead {
  std::uint32_t version = kProtocolVersion;
  RequestKind kind = RequestKind::kNone;
  std::uint32_t shard = 0;  // that the request is for, from 0
  std::uint32_t reserved = 0;
};

struct ReplyHead {
  std::uint32_t version = kProtocolVersion;
  std::int32_t result = 0;                // 0 or a negative errno
  RequestKind kind = RequestKind::kNone;  // of the request
  std::uint32_t reserved = 0;
};

// What follows the head of a reply whose result is not 0.
struct Refusal {
  // -EDQUOT: the exhausted resource, its total, and the remedy. -EACCES: the rule that is missing.
  char why[kTextSize];
};

// The body of a message: one of some structs.
template <std::size_t Size>
class MessageBody {
 public:
  template <typename T>
  T& as() {
    static_assert(kSizeOf<T> <= Size && std::is_trivially_copyable_v<T>);
    return *std::launder(reinterpret_cast<T*>(bytes_));
  }
  template <typename T>
  const T& as() const {
    return *std::launder(reinterpret_cast<const T*>(bytes_));
  }

 private:
  alignas(std::uint64_t) std::byte bytes_[Size];
};

constexpr std::size_t longest(std::size_t RequestRule::*size) {
  std::size_t most = sizeof(Refusal);
  for (const auto& rule : kRequests) most = std::max(most, rule.*size);
  return most;
}

// A request of any kind, as it travels.
struct RequestMessage {
  RequestMessage() = default;  // of no kind
  template <Asked R>
  explicit RequestMessage(const R& request, std::uint32_t shard = 0)
      : head{.kind = kKindOf<R>, .shard = shard} {
    body.as<R>() = request;
  }
  template <Asked R>
  [[nodiscard]] const R& as() const {
    STP_ASSERT(head.kind == kKindOf<R>, "a request is taken for what it is");
    return body.as<R>();
  }

  RequestHead head;
  MessageBody<longest(&RequestRule::size)> body;
};

// A reply to a request of any kind.
struct ReplyMessage {
  // Its body, zeroed, for a request that succeeds.
  template <Asked R>
  typename R::Reply& begin() {
    head = {.kind = kKindOf<R>};
    return body.as<typename R::Reply>() = {};
  }
  template <Asked R>
  [[nodiscard]] const typename R::Reply& as() const {
    STP_ASSERT(head.kind == kKindOf<R> && head.result == 0, "a reply is taken for what it is");
    return body.as<typename R::Reply>();
  }
  void refuse(int error, std::string_view why = {}) {
    head.result = error;
    set_text(body.as<Refusal>().why, why);
  }
  [[nodiscard]] std::string_view why() const {
    return head.result != 0 ? text_of(body.as<Refusal>().why) : std::string_view();
  }

  ReplyHead head;
  MessageBody<longest(&RequestRule::reply_size)> body;
};

// The channel that a reply hands out; nullptr: it hands out none.
const GivenChannel* channel_in(const ReplyMessage& message);

// Bytes of a message, from its head. 0: there is no such message.
std::size_t size_of(const RequestHead& head);
std::size_t size_of(const ReplyHead& head);

// Calls visit(request) with the request's struct. Returns what it returns, or -EINVAL: there is no
// such request.
template <typename Visit>
int dispatch(const RequestMessage& message, Visit&& visit) {
  switch (message.head.kind) {
    case RequestKind::kNone:
      break;
#define STP_VISIT(Name, ...) \
  case RequestKind::k##Name: \
    return visit(message.as<ask::Name>());
      STP_REQUESTS(STP_VISIT)
#undef STP_VISIT
  }
  return -EINVAL;
}

// Whether a client library could have sent this, with so many descriptors. The values of its fields
// are checked by whoever uses them.
bool makes_sense(const RequestMessage& message, std::size_t fd_count);
// Whether it does not use the link: it is served also in places that are reserved for operators.
bool only_watches(RequestKind kind);

// ---- conversion of the engine's types to and from the fixed layouts

// The longest connect_patience, in milliseconds: an hour.
inline constexpr std::uint32_t kLongestPatience = 3'600'000;

// Returns 0, or -EINVAL for values that no client library sends. The Node checks the rest.
int from_wire(const WireConfig& wire, EndpointConfig& out);
WireConfig to_wire(const EndpointConfig& config);

int from_wire(const WireOption& wire, OptionPayload& out);
WireOption to_wire(const OptionPayload& option);

// Names of states and directions, the same in stpctl and in telemetry.
constexpr std::string_view name_of(VcState state) {
  switch (state) {
    case VcState::kConnecting:
      return "connecting";
    case VcState::kOpen:
      return "open";
    case VcState::kClosing:
      return "closing";
    case VcState::kPeerClosing:
      return "peer-closing";
    case VcState::kBothClosing:
      return "both-closing";
    case VcState::kAsked:
      return "asked";
    case VcState::kPeerClosed:
      return "peer-closed";
    case VcState::kFailed:
      return "failed";
  }
  return "unknown";
}

constexpr std::string_view name_of(Direction direction) {
  return direction == Direction::kTransmit ? "tx" : "rx";
}

}  // namespace stp::ipc

namespace stp {
namespace ask = ipc::ask;  // by its short name in every room
}
