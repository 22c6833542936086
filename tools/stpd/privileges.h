// SPDX-License-Identifier: BSD-3-Clause
// Privileges that stpd needs to open links and sockets, but not to serve programs.
#pragma once

#include <string>

namespace stp::stpd {

struct Rights {
  std::string user;   // to become; "": stay who we are
  std::string group;  // "": the user's own
  // A link has entered promiscuous mode and must leave it at the end.
  bool keep_net_admin = false;
};

// Switches to that user, without supplementary groups, and drops all capabilities except those
// named. Call it before threads start that serve clients, because capabilities belong to threads. A
// process of root that stays root keeps everything. False: `error` says what is wrong.
bool drop_rights(const Rights& rights, std::string& error);

}  // namespace stp::stpd
