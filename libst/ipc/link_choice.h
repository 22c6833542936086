// SPDX-License-Identifier: BSD-3-Clause
// Chooses the link for a program that names none to libst.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "libst/ipc/requests.h"

namespace stp::ipc {

struct LinkChoice {
  enum class Why { kEnvironment, kDefaultDaemon, kNothingElse };
  std::string link;
  Why why = Why::kNothingElse;

  [[nodiscard]] bool is_loop() const { return link == "loop" || link.starts_with("loop,"); }
};

// STP_LINK, else the default stpd if its socket exists, else `loop`.
inline LinkChoice choose_link() {
  if (const auto* const text = std::getenv("STP_LINK"); text != nullptr && *text != '\0')
    return {text, LinkChoice::Why::kEnvironment};
  if (::access(kDefaultSocket, F_OK) == 0)
    return {std::string("stpd:").append(kDefaultSocket), LinkChoice::Why::kDefaultDaemon};
  return {"loop", LinkChoice::Why::kNothingElse};
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
