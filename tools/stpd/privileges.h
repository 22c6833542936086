// SPDX-License-Identifier: BSD-3-Clause
// Rights that stpd needs to open links and sockets, and not to serve programs.
#pragma once

#include <string>

namespace stp::stpd {

struct Rights {
  std::string user;   // to become; "": stay who we are
  std::string group;  // "": the user's own
  // To leave promiscuous mode in the end, which a link has entered.
  bool keep_net_admin = false;
};

// Becomes that user, without supplementary groups, and gives up every capability but those named.
// Before threads are started that face clients: capabilities belong to threads. A process of root
// that is to stay root keeps everything. False: `error` says what is wrong.
bool drop_rights(const Rights& rights, std::string& error);

}  // namespace stp::stpd
