// SPDX-License-Identifier: BSD-3-Clause
// What can be known of the arguments of stp-send before a receiver is asked: options that
// contradict each other, the names at the receiver, and what is missing.
#pragma once

#include <string>
#include <vector>

#include "tools/files/send_all.h"
#include "tools/files/tree.h"

namespace stp::files {

// Options of stp-send that contradict each other, or would have no effect.

// What is wrong, and the remedy; "": nothing. `filters`: which of --exclude, --include and
// --exclude-from were given, in that order. No file is looked at.
std::string conflict_of(const Sending& sending, const std::vector<std::string>& filters,
                        bool quiet);

// The names that the arguments of stp-send get at the receiver.

// Standard input is one of the arguments.
bool has_stream(const Sending& sending);
// The name of one argument, with the directory that --into names. Empty: the root of a tree whose
// content arrives without a prefix (".").
std::string name_there(const Sending& sending, const std::string& path);
// One of the arguments is, or lies below, another one.
bool overlap(const std::vector<std::string>& paths);
// Throws std::runtime_error where two arguments would arrive under one name.
void check_names(const Sending& sending);

// What can be known of the arguments of stp-send before a receiver is asked.

// Calls `failed` for each argument that is missing, cannot be opened, or is nothing that is sent,
// and for each such path that --files-from lists. Returns the other arguments. What directories
// hold is not looked at.
std::vector<std::string> first_look(const Sending& sending, const Failed& failed);

}  // namespace stp::files
