// SPDX-License-Identifier: BSD-3-Clause
// The command line of stpd, and its configuration file: the same names in both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libst/service/poll_loop.h"

namespace stp::stpd {

struct Options {
  std::string link;
  std::string socket;
  std::string pcap;  // empty: no trace
  std::uint64_t pcap_frames = ~std::uint64_t{0};
  std::string admin_group;  // empty: none
  service::PollPolicy poll = service::PollPolicy::kAdaptive;
};

// nullopt: the program ends with `exit_status`; help or the error has been printed.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace stp::stpd
