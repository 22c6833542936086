// SPDX-License-Identifier: BSD-3-Clause
// The names that the arguments of stp-send get at the receiver.
#pragma once

#include <string>
#include <vector>

#include "tools/files/send_all.h"

namespace stp::files {

// Standard input is one of the arguments.
bool has_stream(const Sending& sending);
// The name of one argument, with the directory that --into names. Empty: the root of a tree whose
// content arrives without a prefix (".").
std::string name_there(const Sending& sending, const std::string& path);
// One of the arguments is, or lies below, another one.
bool overlap(const std::vector<std::string>& paths);
// Throws std::runtime_error where two arguments would arrive under one name.
void check_names(const Sending& sending);

}  // namespace stp::files
