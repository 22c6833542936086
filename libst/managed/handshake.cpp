// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/handshake.h"

#include <algorithm>

namespace stp::managed {

void Handshake::send(Session& session, const Hello& hello, Time patience, Time now) {
  session.sequencer.expire(now);
  auto* const out = session.staging.hello_out();
  const auto length = encode(hello, out);
  WriteOptions options;
  options.patience = patience;
  session.sequencer.write(context::kHelloOut, session.staging.memory->at(out), length, options);
}

void Handshake::ask(Session& session, Time now) const {
  send(session, hello_, deadline_ - std::min(deadline_, now), now);
}

void Handshake::answer(Session& session, const Hello& decision, Time now) {
  deadline_ = now + kDecisionPatience;
  send(session, decision, kAcceptPatience, now);
}

bool Handshake::receive(Session& session, bool& begun) {
  begun = false;
  const auto offer = receiving_ ? std::nullopt : session.sequencer.waiting();
  if (!offer) return true;
  if (offer->length > kHelloSize) return false;
  receiving_ = begun = true;
  session.sequencer.post_receive(context::kHelloIn, session.hello_landing());
  return true;
}

const Hello* Handshake::on_received(const Session& session, const Completion& c) {
  receiving_ = false;
  const Bytes bytes{session.staging.hello_in(), static_cast<std::size_t>(c.length)};
  return decode(bytes, theirs_) ? &theirs_ : nullptr;
}

}  // namespace stp::managed
