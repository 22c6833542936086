// SPDX-License-Identifier: BSD-3-Clause
// Owns how a connection opens: the first message of each direction (hello.h) with its private data,
// and the deadline for what the other side has to do. It promises that an opening ends in bounded
// time, whatever the peer does.
#pragma once

#include "libst/managed/hello.h"
#include "libst/managed/session.h"

namespace stp::managed {

class Handshake {
 public:
  // This side connects: it sends `request` once the Virtual Connection is open. The program sets
  // the deadline.
  void connect(Hello request, Time deadline) {
    hello_ = std::move(request);
    deadline_ = deadline;
  }
  // This side has been connected to: the peer's request has to come.
  void expect(Time now) { deadline_ = now + kRequestPatience; }
  // Sends the request of connect().
  void ask(Session& session, Time now) const;
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

  // Timeout for the request on a new Virtual Connection.
  static constexpr Time kRequestPatience = 10 * kSecond;
  // Timeout for the delivery of an answer. The peer's program may have to wait for a core.
  static constexpr Time kAcceptPatience = 30 * kSecond;
  // Limit for an answer as a whole, after stm_accept() or stm_reject(). Frames of the peer's layer
  // restart kAcceptPatience, but not this.
  static constexpr Time kDecisionPatience = 45 * kSecond;

 private:
  static void send(Session& session, const Hello& hello, Time patience, Time now);

  Hello hello_, theirs_;
  bool receiving_ = false;
  Time deadline_ = kNever;
};

}  // namespace stp::managed
