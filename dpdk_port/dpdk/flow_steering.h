// SPDX-License-Identifier: BSD-3-Clause
// Asks a NIC to put each STP frame into the queue of the shard that its D_Port names, by rte_flow
// rules on the D_Port's last bits. So the number of queues has to be a power of two. Frames in SNAP
// form, and those that no rule matches, stay on the first queue.
#pragma once

#include <rte_flow.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stp::port {

// DPDK's calls, for one device. Tests have others.
struct FlowCalls {
  std::function<int(const rte_flow_attr&, const rte_flow_item*, const rte_flow_action*,
                    rte_flow_error&)>
      validate;
  std::function<rte_flow*(const rte_flow_attr&, const rte_flow_item*, const rte_flow_action*,
                          rte_flow_error&)>
      create;
  std::function<void(rte_flow*)> destroy;
};
FlowCalls flow_calls_of(std::uint16_t dpdk_port);

// "": all rules are there. Else why they are not; then there is none.
std::string steer_by_port(const FlowCalls& calls, unsigned queues,
                          std::optional<std::uint16_t> vlan);

}  // namespace stp::port
