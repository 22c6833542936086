// SPDX-License-Identifier: BSD-3-Clause
// Privileges that stpd needs to open links and sockets, but not to serve programs.
#pragma once

#include <string>

namespace stp::stpd {

struct Rights {
  std::string user;   // to switch to; "": unchanged
  std::string group;  // "": the user's primary group
  // A link of af_xdp has entered promiscuous mode and must leave it at the end.
  bool keep_net_admin = false;
};

// Switches to that user and group, without supplementary groups (a process that has both already
// keeps them). Then drops all capabilities of the calling thread except those named. Call it before
// threads start that serve clients, because capabilities belong to threads. A process of root that
// stays root keeps everything. False: `error` says what is wrong.
bool drop_rights(const Rights& rights, std::string& error);

}  // namespace stp::stpd
