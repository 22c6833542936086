// SPDX-License-Identifier: BSD-3-Clause
// What an open connection exchanges messages with: the Sequencer, and the eager rings of both
// sides. A message takes one of two ways, a Write or slots of a ring. Both ways share the numbers
// of the Sequencer, so the order of messages is known. A session begins when the Virtual Connection
// is open.
#pragma once

#include "libst/managed/eager.h"
#include "libst/managed/pool.h"
#include "libst/managed/staging.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

// Contexts that a connection gives to its Sequencer. Those of operations have OperationList::kMark.
namespace context {
inline constexpr Context kHelloOut = 1, kHelloIn = 2;
// Receives of the connection's own count from here.
inline constexpr Context kFirstReceive = 16;
// A receive from a pool: this bit, and the number of its message.
inline constexpr Context kMessageMark = Context{1} << 62;
// A region of the peer's: this bit, and its key.
inline constexpr Context kKeyMark = Context{1} << 63;
}  // namespace context

// Message 1 of each side is the handshake's. The program's messages are counted from 1. 0: none.
constexpr std::uint32_t program_message(std::uint32_t message) {
  return message > 0 ? message - 1 : 0;
}

struct Session {
  Session(const SequencerConfig& config, const Staging& memory, EndpointId of)
      : sequencer(config), staging(memory), endpoint(of) {}

  Sequencer sequencer;
  EagerOut eager_out;
  EagerIn eager_in;
  const Staging staging;
  const EndpointId endpoint;

  // The peer's next message, if it has arrived in the ring; else nullptr.
  [[nodiscard]] const EagerIn::Arrived* arrived() const {
    return eager_in.find(sequencer.expected_message());
  }
  // Bytes have arrived in a region. Returns false if the region is the ring, and they break its
  // rules.
  bool on_arrived(const Completion& c) {
    if (!eager_in.is_served_as(c.request)) return true;  // a put with Interrupt
    EagerHead head;
    if (!eager_in.arrived(c.offset, c.length, staging, head)) return false;
    eager_out.taken(head.taken);
    return true;
  }
  // Where the peer's Write for `receive` lands. An empty message needs a place too, although
  // nothing is written there.
  [[nodiscard]] Landing landing(const PostedReceive& receive) const {
    if (!receive.memory) return hello_landing();
    return receive.memory->landing(endpoint, receive.ptr, receive.length);
  }
  [[nodiscard]] Landing hello_landing() const {
    return staging.memory->landing(endpoint, staging.hello_in(), kHelloSize);
  }
};

}  // namespace stp::managed
