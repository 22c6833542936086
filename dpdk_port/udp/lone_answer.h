// SPDX-License-Identifier: BSD-3-Clause
// How often an idle turn asks a socket for the answer to a lone datagram that has left by it. What
// a turn does besides takes more than half as long as a call that finds nothing, and a datagram
// that comes meanwhile waits for it: so turns in which an answer may come ask several times. Only
// for a while: the program may have something else to do.
#pragma once

namespace stp::port {

class LoneAnswer {
 public:
  static constexpr unsigned kAsks = 4;
  static constexpr unsigned kTurns = 16;  // some 25 us

  void sent() { turns_ = kTurns; }
  [[nodiscard]] unsigned asks() const { return turns_ != 0 ? kAsks : 1; }
  // A turn has asked; `came`: something was there.
  void turn(bool came) {
    if (turns_ != 0) turns_ = came ? 0 : turns_ - 1;
  }

 private:
  unsigned turns_ = 0;  // that may still bring it
};

}  // namespace stp::port
