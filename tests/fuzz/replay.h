// SPDX-License-Identifier: BSD-3-Clause
// Runs the fuzz target of this program once on each of many inputs, so that they are an ordinary
// test with any compiler.
#pragma once

#include <optional>
#include <string>

namespace stp::fuzz {

// `path`: a packed corpus (tests/fuzz/corpus), or a folder whose files are inputs. `count`: how
// many inputs it must have. Returns the exit status of the program. The name of each input is
// printed before it runs: if the input ends the process, its name is the last line.
int replay(const std::string& path, std::optional<std::size_t> count);

// The input is one file. False: it cannot be read.
bool replay_file(const std::string& path);

}  // namespace stp::fuzz
