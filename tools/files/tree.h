// SPDX-License-Identifier: BSD-3-Clause
// All that a directory holds, in an order that a receiver can follow: what is in a directory comes
// before the directory itself, whose permissions and time are then final.
#pragma once

#include <functional>
#include <string>

namespace stp::files {

// Calls `visit(path, path_there)` for each; `path_there` begins with the base name of `root`, or
// is below nothing where that has none ("."). What cannot be read is told to `failed`.
void walk_tree(const std::string& root,
               const std::function<void(const std::string&, const std::string&)>& visit,
               const std::function<void(const std::string&, const std::string&)>& failed);

}  // namespace stp::files
