// SPDX-License-Identifier: BSD-3-Clause
// The table of the options of st_getopt and st_setopt (libst document, section 6).
#pragma once

#include "libst/ipc/requests.h"

namespace stp::client {

struct OptionRule {
  int option;
  std::uint32_t ipc::WireConfig::*config;   // nullptr: a read-only value of a connection
  std::uint32_t ipc::VcFacts::*connection;  // nullptr: the configured value
  std::uint32_t least = 0, most = UINT32_MAX;
  bool root_only = false;

  [[nodiscard]] bool remote() const { return config == nullptr; }
};

// nullptr: no such option.
const OptionRule* find_option(int option);

// Checks the value, and whether the option can be set at all. Returns 0, -EPERM or -EINVAL.
int check_option(const OptionRule& rule, std::uint32_t value);

}  // namespace stp::client
