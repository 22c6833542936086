// SPDX-License-Identifier: BSD-3-Clause
// What can be known of the arguments of stp-send before a receiver is asked.
#pragma once

#include <string>
#include <vector>

#include "tools/files/send_all.h"
#include "tools/files/tree.h"

namespace stp::files {

// Calls `failed` for each argument that is missing, cannot be opened, or is nothing that is sent,
// and for each such path that --files-from lists. Returns the other arguments. What directories
// hold is not looked at.
std::vector<std::string> first_look(const Sending& sending, const Failed& failed);

}  // namespace stp::files
