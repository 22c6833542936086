// SPDX-License-Identifier: BSD-3-Clause
// Chooses the link for a program that names none to libst.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "libst/ipc/requests.h"

namespace stp::ipc {

struct LinkChoice {
  enum class Why { kEnvironment, kDefaultDaemon, kNothingElse };
  std::string link;
  Why why = Why::kNothingElse;

  [[nodiscard]] bool is_loop() const { return link == "loop" || link.starts_with("loop,"); }
};

// The stpd at `socket` if that exists, else `loop`. Who has found that stpd once keeps to it: while
// it is started again its socket is away, and a program that opened `loop` meanwhile would wait
// there, alone, for ever.
class UsualLink {
 public:
  explicit UsualLink(std::string socket) : socket_(std::move(socket)) {}
  LinkChoice choose() {
    if (!was_found_ && ::access(socket_.c_str(), F_OK) != 0)
      return {"loop", LinkChoice::Why::kNothingElse};
    was_found_ = true;
    return {"stpd:" + socket_, LinkChoice::Why::kDefaultDaemon};
  }

 private:
  const std::string socket_;
  std::atomic<bool> was_found_{false};
};

// STP_LINK, else the usual one.
inline LinkChoice choose_link() {
  static UsualLink usual(kDefaultSocket);
  if (const auto* const text = std::getenv("STP_LINK"); text != nullptr && *text != '\0')
    return {text, LinkChoice::Why::kEnvironment};
  return usual.choose();
}

// For a program that waits until its link is there, and of which no other thread runs: if none is
// named, that is the usual stpd, whether it runs already or not.
inline void wait_for_usual_stpd() {
  if (choose_link().why == LinkChoice::Why::kNothingElse) ::setenv("STP_LINK", "stpd:", 1);
}

// Returns one line for the user of a program.
inline std::string describe(const LinkChoice& choice) {
  switch (choice.why) {
    case LinkChoice::Why::kEnvironment:
      return "link " + choice.link;
    case LinkChoice::Why::kDefaultDaemon:
      return "link " + choice.link + " (no other is named)";
    case LinkChoice::Why::kNothingElse:
      break;
  }
  return std::string(
             "link loop, which reaches only this process: STP_LINK is not set, and no stpd "
             "serves ") +
         kDefaultSocket;
}

// Returns cause and remedy, for a program that finds no peer on `loop`.
inline std::string no_link(const LinkChoice& choice) {
  const auto cause = choice.why == LinkChoice::Why::kNothingElse
                         ? std::string("no link is named, and no stpd serves ") + kDefaultSocket
                         : "the link loop reaches only this process";
  return cause +
         "; name one with --link or STP_LINK (iface:NAME, udp:, stpd:PATH), or start stpd; " +
         "\"stpctl devices\" lists what this machine has";
}

}  // namespace stp::ipc
