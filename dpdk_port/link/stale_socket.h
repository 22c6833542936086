// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace stp::port {

// A memif server that was killed leaves its socket's file behind, and the next one could not take
// its place. Removes the file if it is a socket that nobody answers at; leaves everything else.
void remove_stale_socket(const std::string& path);

}  // namespace stp::port
