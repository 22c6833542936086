// SPDX-License-Identifier: BSD-3-Clause
// Owns how a connection ends: what its operations and its program are told, what the peer is told
// (docs/protocol.md, 9.34), and how long a graceful end may take. The first end counts: Ending
// never changes what was decided first.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "libst/include/stp/managed.h"
#include "libst/managed/connection_state.h"
#include "libst/service/messages.h"
#include "stp/base/assert.h"
#include "stp/channel/layout.h"
#include "stp/types.h"

namespace stp::managed {

// The reason for an end that is not graceful. The request to disconnect carries it to the peer.
enum class Farewell : std::uint32_t {
  kNone = 0,
  kBroken = 1,     // the program has broken the connection off
  kNoReceive = 2,  // a message found no receive within the timeout
};

service::WireOption to_option(Farewell farewell);
// The status of the end as the peer's program sees it; 0: a graceful end.
int status_of_end(const service::WireOption& option);

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
  const bool ours = state == ConnectionState::kClosing;
  const bool was_up = ours || state == ConnectionState::kUp || state == ConnectionState::kDraining;
  if (!was_up) return failure(-ENOTCONN);
  if (reason != 0) return failure(reason);
  return End{ours ? -ECANCELED : -ENOTCONN, STM_DISCONNECTED, 0, state == ConnectionState::kUp};
}

// The end of a connection whose deadline has passed.
constexpr End end_of_patience(ConnectionState state) {
  if (state == ConnectionState::kRejecting) return {-ECANCELED, 0, 0, false};
  if (state == ConnectionState::kClosing) return {-ECANCELED, STM_DISCONNECTED, 0, false};
  return failure(-ETIMEDOUT);
}

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
  End end_;
  int reason_ = 0;
  bool begun_ = false, has_flushed_ = false;
  Time deadline_ = kNever;
};

}  // namespace stp::managed
