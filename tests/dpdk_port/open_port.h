// SPDX-License-Identifier: BSD-3-Clause
// Opens a link of one shard.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "dpdk_port/port.h"

namespace stp::port {

// nullptr: `error` says why.
inline std::unique_ptr<Port> open_port(const LinkConfig& config, std::string& error) {
  OpenError why;
  auto ports = Port::open_shards(config, why);
  error = why.text;
  return ports.empty() ? nullptr : std::move(ports.front());
}

}  // namespace stp::port
