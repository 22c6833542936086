// SPDX-License-Identifier: BSD-3-Clause
// How a managed connection begins and ends: its states, the handshake, the ending.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/ipc/requests.h"
#include "libst/managed/memory.h"
#include "libst/managed/session.h"
#include "stp/base/assert.h"
#include "stp/base/state_machine.h"
#include "stp/channel/layout.h"
#include "stp/types.h"

namespace stp::managed {

// The life of a managed connection (docs/managed.md).
//
//   Idle ----- connect ---> Connecting --- opened ---> Asking ----- agreed ----.
//    |                                                                          |
//    | expect                                                                   |
//    v                                                                          v
//   Expected - request ---> Requested ---- accept ---> Accepting -- agreed ---> Up
//                               |                                               |
//                               | reject                                        | disconnect
//                               v                                               v
//                           Rejecting                  Closing <-- drained -- Draining
//
//   Each of these ---- over ----> Ending ---- let go ----> Ended
enum class ConnectionState : std::uint8_t {
  kIdle,        // created
  kConnecting,  // RC sent
  kAsking,      // request sent, waits for the answer
  kExpected,    // taken from a listener, waits for the request
  kRequested,   // waits for the program's decision
  kAccepting,   // accepted, the answer is being sent
  kRejecting,
  kUp,
  kDraining,  // disconnects when all posted operations are complete
  kClosing,   // disconnects
  kEnding,    // over; remaining completions are reported when that is allowed
  kEnded,
};

// In the order in which a connection passes them.
enum class ConnectionStage : std::uint8_t { kOpening, kExchanging, kClosing, kOver };
// What becomes of an operation that the program posts.
enum class Posting : std::uint8_t {
  kRefused,  // there is no connection yet, or any more
  kWaits,    // until the connection is up
  kBegins,
  kTooLate,  // the program has disconnected
};
// What this side does with the first messages.
enum class Greeting : std::uint8_t { kNone, kAwaits, kAccepts, kRejects };

// What the states have in common. The compiler asks for each new state here and in
// Connection::disconnect(): nothing else compares with states, but asks whether an event is legal.
struct ConnectionFacts {
  ConnectionState state;
  ConnectionStage stage;
  Posting posting;
  Greeting greeting;
  std::uint32_t shown;  // to the program
};
inline constexpr auto kConnectionFacts = std::to_array<ConnectionFacts>({
    {ConnectionState::kIdle, ConnectionStage::kOpening, Posting::kRefused, Greeting::kNone,
     STM_IDLE},
    {ConnectionState::kConnecting, ConnectionStage::kOpening, Posting::kWaits, Greeting::kNone,
     STM_CONNECTING},
    {ConnectionState::kAsking, ConnectionStage::kOpening, Posting::kWaits, Greeting::kAwaits,
     STM_CONNECTING},
    {ConnectionState::kExpected, ConnectionStage::kOpening, Posting::kRefused, Greeting::kAwaits,
     STM_REQUESTED},
    {ConnectionState::kRequested, ConnectionStage::kOpening, Posting::kRefused, Greeting::kNone,
     STM_REQUESTED},
    {ConnectionState::kAccepting, ConnectionStage::kOpening, Posting::kWaits, Greeting::kAccepts,
     STM_CONNECTING},
    {ConnectionState::kRejecting, ConnectionStage::kOpening, Posting::kRefused, Greeting::kRejects,
     STM_ENDING},
    {ConnectionState::kUp, ConnectionStage::kExchanging, Posting::kBegins, Greeting::kNone, STM_UP},
    {ConnectionState::kDraining, ConnectionStage::kExchanging, Posting::kTooLate, Greeting::kNone,
     STM_ENDING},
    {ConnectionState::kClosing, ConnectionStage::kClosing, Posting::kTooLate, Greeting::kNone,
     STM_ENDING},
    {ConnectionState::kEnding, ConnectionStage::kOver, Posting::kRefused, Greeting::kNone,
     STM_ENDING},
    {ConnectionState::kEnded, ConnectionStage::kOver, Posting::kRefused, Greeting::kNone,
     STM_ENDED},
});
constexpr const ConnectionFacts& facts_of(ConnectionState state) {
  return kConnectionFacts[static_cast<std::size_t>(state)];
}

enum class ConnectionEvent : std::uint8_t {
  kConnect,     // the program connects it
  kExpect,      // a listener has taken it from its backlog
  kOpened,      // the Virtual Connection is open
  kRequest,     // the peer's request has come
  kAccept,      // the program accepts the request
  kReject,      // the program, or its listener's end, rejects the request
  kAgreed,      // the peer has accepted; or the peer knows that it was accepted
  kDisconnect,  // the program disconnects gracefully
  kDrained,     // all posted operations are complete
  kOver,        // any end: by either program, the link, or a timeout
  kLetGo,       // no frame uses its memory any more
};

inline constexpr Transition<ConnectionState, ConnectionEvent> kConnectionTransitions[] = {
    {ConnectionState::kIdle, ConnectionEvent::kConnect, ConnectionState::kConnecting},
    {ConnectionState::kIdle, ConnectionEvent::kExpect, ConnectionState::kExpected},
    {ConnectionState::kIdle, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kConnecting, ConnectionEvent::kOpened, ConnectionState::kAsking},
    {ConnectionState::kConnecting, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kAsking, ConnectionEvent::kAgreed, ConnectionState::kUp},
    {ConnectionState::kAsking, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kExpected, ConnectionEvent::kRequest, ConnectionState::kRequested},
    {ConnectionState::kExpected, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kRequested, ConnectionEvent::kAccept, ConnectionState::kAccepting},
    {ConnectionState::kRequested, ConnectionEvent::kReject, ConnectionState::kRejecting},
    {ConnectionState::kRequested, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kAccepting, ConnectionEvent::kAgreed, ConnectionState::kUp},
    {ConnectionState::kAccepting, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kRejecting, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kUp, ConnectionEvent::kDisconnect, ConnectionState::kDraining},
    {ConnectionState::kUp, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kDraining, ConnectionEvent::kDrained, ConnectionState::kClosing},
    {ConnectionState::kDraining, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kClosing, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kEnding, ConnectionEvent::kLetGo, ConnectionState::kEnded},
};
static_assert(kConnectionFacts.size() == state_count(kConnectionTransitions) &&
                  std::ranges::is_sorted(kConnectionFacts, std::ranges::less_equal(),
                                         &ConnectionFacts::state),
              "each state has a row of facts, in their order");

// The first message of each direction of a managed connection: a request, then its answer, each
// with private data (docs/protocol.md, 9.30).
struct Hello {
  enum class Kind : std::uint16_t { kRequest = 1, kAccept = 2, kReject = 3 };
  Kind kind = Kind::kRequest;
  std::vector<std::byte> private_data;
};

inline constexpr std::size_t kHelloHead = 12;

// Writes the message to `out`, which has room for kHelloSize bytes. Returns its length.
std::size_t encode(const Hello& hello, std::byte* out);
// False: not a valid message.
bool decode(Bytes bytes, Hello& out);

// The stations that a connection of the domain is up to: their hosts are alive. Counts them,
// because each connection that waits for its peer asks once a second. protocol: 5.23
class LivingPeers {
 public:
  // A connection's Node has been answered, and that connection is over.
  void add(const MacAddr& station) { ++connections_[station]; }
  void remove(const MacAddr& station) {
    const auto found = connections_.find(station);
    STP_ASSERT(found != connections_.end(), "a connection that is over has been counted");
    if (--found->second == 0) connections_.erase(found);
  }
  [[nodiscard]] bool contains(const MacAddr& station) const {
    return connections_.contains(station);
  }

 private:
  std::map<MacAddr, std::size_t> connections_;
};

// The newest of the stations that have fallen silent while a connection to them was up, until they
// answer again. Who connects to one of them has waited for it before: programs that go on after an
// error would else wait as long for each operation.
class SilentPeers {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr Time kRemembered = 30 * kSecond;

  void add(const MacAddr& station, Time now) {
    remove(station);
    if (stations_.size() == kMost) stations_.erase(stations_.begin());
    stations_.push_back({station, now});
  }
  void remove(const MacAddr& station) {
    std::erase_if(stations_, [&](const Silent& each) { return each.station == station; });
  }
  [[nodiscard]] bool contains(const MacAddr& station, Time now) const {
    return std::ranges::any_of(stations_, [&](const Silent& each) {
      return each.station == station && now - each.since < kRemembered;
    });
  }

 private:
  struct Silent {
    MacAddr station;
    Time since;
  };
  std::vector<Silent> stations_;  // the newest last
};

// Owns how a connection opens: its first messages (Hello), and the deadline for what the other side
// has to do. It promises that an opening ends in bounded time, whatever the peer does.
class Handshake {
 public:
  // This side connects: it sends `request` once the Virtual Connection is open. The program sets
  // the deadline; until `silent`, the peer's host has to answer at all.
  void connect(Hello request, Time silent, Time deadline) {
    hello_ = std::move(request);
    deadline_ = std::min(silent, deadline);
    decided_by_ = deadline;
  }
  // The peer's host has to answer by then.
  void wait_until(Time then) { deadline_ = std::min(then, decided_by_); }
  // The host is there, although it has not answered this connection: looks again at `then`.
  // Returns false if the program's deadline has passed.
  bool is_there(Time now, Time then) {
    deadline_ = std::min(then, decided_by_);
    return now < decided_by_;
  }
  // This side has been connected to: the peer's request has to come.
  void expect(Time now) { deadline_ = now + kRequestPatience; }
  // Sends the request of connect().
  void ask(Session& session, Time now);
  // Sends this side's decision.
  void answer(Session& session, const Hello& decision, Time now);

  // Receives the peer's message into staging memory. Returns false if that message is too long.
  bool receive(Session& session, bool& begun);
  // That message has come. Returns nullptr if it is none.
  const Hello* on_received(const Session& session, const Completion& c);
  [[nodiscard]] const std::vector<std::byte>& private_data() const { return theirs_.private_data; }

  // Nothing is expected of the other side any more.
  void stop_waiting() { deadline_ = kNever; }
  [[nodiscard]] Time deadline() const { return deadline_; }

  // How long the host of a peer may be silent that a program connects to without a timeout: no
  // longer than that of a connection (docs/protocol.md, 5.23).
  static constexpr Time kSilence = 4'500 * kMillisecond;
  // The same of one that has fallen silent a short time ago.
  static constexpr Time kStillSilent = kSecond;
  // What is offered for longer is given up (docs/protocol.md, 10.11).
  static constexpr Time kLongestPatience = Time{24} * 3600 * kSecond;
  // Timeout for the request on a new Virtual Connection.
  static constexpr Time kRequestPatience = 10 * kSecond;
  // Timeout for the delivery of an answer. The peer's program may have to wait for a core.
  static constexpr Time kAcceptPatience = 30 * kSecond;
  // Limit for an answer as a whole, after stm_accept() or stm_reject(). Frames of the peer's layer
  // restart kAcceptPatience, but not this.
  static constexpr Time kDecisionPatience = 45 * kSecond;

 private:
  static void send(Session& session, const Hello& hello, Time patience, Time now);

  Time deadline_ = kNever;
  Time decided_by_ = kNever;  // the program's deadline, of the side that connects
  bool receiving_ = false;
  Hello hello_, theirs_;
};

// The reason for an end that is not graceful. The request to disconnect carries it to the peer.
enum class Farewell : std::uint32_t {
  kNone = 0,
  kBroken = 1,     // the program has broken the connection off
  kNoReceive = 2,  // a message found no receive within the timeout
};

ipc::WireOption to_option(Farewell farewell);
// The status of the end as the peer's program sees it; 0: a graceful end.
int status_of_end(const ipc::WireOption& option);

struct End {
  int flushed = 0;          // status of the operations that are left
  std::uint32_t event = 0;  // for the program; 0: none
  int status = 0;           // of that event
  // Messages that have arrived can still be received: their sender has seen them arrive.
  bool keeps_messages = false;
};

// An end with the same error for everything.
constexpr End failure(int error) {
  return {error, STM_FAILED, error, false};
}

// The end that the state of its channel means for a connection; nullopt: none. `error`: why the
// channel has failed. `reason`: status_of_end() of what the peer said.
constexpr std::optional<End> end_of_channel(ChannelState channel, ConnectionState state, int error,
                                            int reason) {
  switch (channel) {
    case ChannelState::kConnecting:
    case ChannelState::kOpen:
      return std::nullopt;
    case ChannelState::kFailed:
      return failure(error);
    case ChannelState::kPeerClosed:
    case ChannelState::kClosed:
      break;
  }
  const auto& facts = facts_of(state);
  const bool ours = facts.stage == ConnectionStage::kClosing;
  if (!ours && facts.stage != ConnectionStage::kExchanging) return failure(-ENOTCONN);
  if (reason != 0) return failure(reason);
  return End{ours ? -ECANCELED : -ENOTCONN, STM_DISCONNECTED, 0, facts.posting == Posting::kBegins};
}

// The end of a connection whose deadline has passed.
constexpr End end_of_patience(ConnectionState state) {
  const auto& facts = facts_of(state);
  if (facts.greeting == Greeting::kRejects) return {-ECANCELED, 0, 0, false};
  if (facts.stage == ConnectionStage::kClosing) return {-ECANCELED, STM_DISCONNECTED, 0, false};
  return failure(-ETIMEDOUT);
}

// Owns how a connection ends: what its operations and its program are told, what the peer is told
// (docs/protocol.md, 9.34), and how long a graceful end may take. The first end counts: Ending
// never changes what was decided first.
class Ending {
 public:
  // Timeout for the peer's confirmation of a graceful end, after the queued operations are done.
  static constexpr Time kClosePatience = 30 * kSecond;

  // A graceful end waits for the peer.
  void wait(Time now) { deadline_ = now + kClosePatience; }
  [[nodiscard]] Time deadline() const { return deadline_; }

  void begin(const End& end) {
    STP_ASSERT(!begun_, "a connection ends once");
    begun_ = true;
    end_ = end;
    reason_ = end.status;
    deadline_ = kNever;
  }
  // The status of the end; 0: graceful, or none yet.
  [[nodiscard]] int reason() const { return reason_; }
  [[nodiscard]] const End& end() const { return end_; }
  // Returns true once: everything that is left is to be completed now.
  bool flush_once() { return !std::exchange(has_flushed_, true); }

  [[nodiscard]] bool keeps_messages() const { return begun_ && end_.keeps_messages; }
  void drop_messages() { end_.keeps_messages = false; }
  // The program has gone: nobody is told.
  void be_silent() {
    end_.event = 0;
    drop_messages();
  }

 private:
  Time deadline_ = kNever;
  End end_;
  int reason_ = 0;
  bool begun_ = false, has_flushed_ = false;
};

}  // namespace stp::managed
