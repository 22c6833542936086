// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/port.h"

#include <exception>

#include "dpdk_port/link_port.h"

namespace stp::port {

std::unique_ptr<Port> Port::open(const LinkConfig& config, std::string& error) try {
  std::string reason;
  std::unique_ptr<Port> port;
  if (config.kind == LinkKind::kStpd) {
    reason = "this link is a daemon's: it is reached through libst";
  } else if (config.kind == LinkKind::kLoop) {
    port = open_loop_port(config, reason);
  } else {
    port = open_ethdev_port(config, reason);
  }
  if (!port) error = "link '" + config.text + "': " + reason;
  return port;
} catch (const std::exception& failure) {
  error = "link '" + config.text + "': " + failure.what();
  return nullptr;
}

}  // namespace stp::port
