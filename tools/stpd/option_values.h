// SPDX-License-Identifier: BSD-3-Clause
// Parses the values of options. An invalid value throws cli::ValidationError, which names the
// option, its value and the allowed values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stp::stpd {

[[noreturn]] void refuse(const std::string& what);

// A whole number up to `most`.
std::uint64_t parse_count(const std::string& option, const std::string& text, std::uint64_t most);
// Bytes: 4096, 512KiB, 64M, "4 GiB"; units are powers of 1024.
std::uint64_t parse_size(const std::string& option, const std::string& text);
// "2-3,6" of --cpus: CPUs that this process may run on.
std::vector<unsigned> parse_cpus(const std::string& text);
// Three octal digits, of --socket-mode.
mode_t parse_mode(const std::string& text);

}  // namespace stp::stpd
