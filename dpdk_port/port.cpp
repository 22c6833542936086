// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/port.h"

#include <algorithm>
#include <exception>

#include "dpdk_port/link/cpus.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link_port.h"
#include "stp/base/caught.h"

namespace stp::port {
namespace {

unsigned shards_of(const LinkConfig& config) {
  return config.queues == kAutoQueues ? std::min(usable_cpu_count(), kMaxQueues) : config.queues;
}

// An interface by the name that the kernel gives it: so everything else, such as who owns it, needs
// not know of alternative names.
LinkConfig with_own_name(const LinkConfig& config) {
  LinkConfig out = config;
  const bool may_name_one = config.kind == LinkKind::kIface || is_internet(config.kind);
  if (may_name_one && index_of_interface(config.target) != 0)
    out.target = name_of_interface(config.target);
  return out;
}

LinkPorts open_kind(const LinkConfig& config, unsigned shards, OpenError& error) {
  if (config.kind == LinkKind::kStpd) {
    error.text = "this link is a daemon's: it is reached through libst";
    return {};
  }
  if (config.kind == LinkKind::kLoop) return open_loop_ports(config, shards);
  if (is_internet(config.kind)) return open_udp_ports(config, shards, error);
  return open_ethdev_ports(config, shards, error.text);
}

}  // namespace

std::vector<std::unique_ptr<Port>> Port::open_shards(const LinkConfig& config,
                                                     OpenError& error) try {
  error = {};
  LinkPorts ports = open_kind(with_own_name(config), shards_of(config), error);
  if (ports.empty()) error.text = "link '" + config.text + "': " + error.text;
  return {std::make_move_iterator(ports.begin()), std::make_move_iterator(ports.end())};
} catch (const std::exception& failure) {
  error.text = "link '" + config.text + "': " + what_of(failure);
  return {};
}

}  // namespace stp::port
