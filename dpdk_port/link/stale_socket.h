// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace stp::port {

// Removes the file at `path` if it is a socket that nobody answers; leaves anything else. A killed
// memif server leaves its socket's file behind, where the next one could not bind.
void remove_stale_socket(const std::string& path);

}  // namespace stp::port
