// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/device.h"

#include <rte_byteorder.h>
#include <rte_errno.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "stp/wire/layout.h"

namespace stp::port {
namespace {

constexpr std::size_t kPortBytes = 2;

// One rule, in DPDK's terms. It refers to itself, and so stays where it is.
struct Rule {
  Rule(unsigned queue, unsigned queues, std::optional<std::uint16_t> vlan);
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  rte_flow_attr attributes{};
  rte_flow_item_eth ethernet{}, ethernet_mask{};
  rte_flow_item_vlan tag{}, tag_mask{};
  rte_flow_item_raw port{}, port_mask{};
  std::array<std::uint8_t, kPortBytes> bits, bits_mask;
  rte_flow_action_queue to{};
  std::array<rte_flow_item, 4> pattern{};
  std::array<rte_flow_action, 2> actions{};
};

Rule::Rule(unsigned queue, unsigned queues, std::optional<std::uint16_t> vlan)
    : bits{0, static_cast<std::uint8_t>(queue)},
      bits_mask{0, static_cast<std::uint8_t>(queues - 1)} {
  attributes.ingress = 1;
  const std::uint16_t type = rte_cpu_to_be_16(wire::kEtherType), all = 0xffff;
  std::size_t at = 0;
  if (vlan) {
    ethernet.type = rte_cpu_to_be_16(wire::kVlanEtherType);
    tag.tci = rte_cpu_to_be_16(*vlan);
    tag_mask.tci = rte_cpu_to_be_16(0x0fff);  // whatever its priority
    tag.inner_type = type;
    tag_mask.inner_type = all;
  } else {
    ethernet.type = type;
  }
  ethernet_mask.type = all;
  pattern[at++] = {RTE_FLOW_ITEM_TYPE_ETH, &ethernet, nullptr, &ethernet_mask};
  if (vlan) pattern[at++] = {RTE_FLOW_ITEM_TYPE_VLAN, &tag, nullptr, &tag_mask};
  port.relative = 1;
  port.offset = wire::at::kDPort;
  port.length = kPortBytes;
  port.pattern = bits.data();
  // DPDK's own mask of such an item, which C++ does not see.
  port_mask.relative = port_mask.search = 1;
  port_mask.reserved = 0x3fffffff;
  port_mask.offset = -1;
  port_mask.limit = port_mask.length = 0xffff;
  port_mask.pattern = bits_mask.data();
  pattern[at++] = {RTE_FLOW_ITEM_TYPE_RAW, &port, nullptr, &port_mask};
  pattern[at] = {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr};
  to.index = static_cast<std::uint16_t>(queue);
  actions = {{{RTE_FLOW_ACTION_TYPE_QUEUE, &to}, {RTE_FLOW_ACTION_TYPE_END, nullptr}}};
}

std::string refusal(const char* call, int result, const rte_flow_error& error) {
  std::string text = std::string("the driver refuses rte_flow rules on the D_Port (") + call + ": ";
  text += error.message != nullptr ? error.message : std::strerror(std::abs(result));
  return text + ")";
}

}  // namespace

FlowCalls flow_calls_of(std::uint16_t dpdk_port) {
  return {.validate =
              [dpdk_port](const rte_flow_attr& attributes, const rte_flow_item* pattern,
                          const rte_flow_action* actions, rte_flow_error& error) {
                return rte_flow_validate(dpdk_port, &attributes, pattern, actions, &error);
              },
          .create =
              [dpdk_port](const rte_flow_attr& attributes, const rte_flow_item* pattern,
                          const rte_flow_action* actions, rte_flow_error& error) {
                return rte_flow_create(dpdk_port, &attributes, pattern, actions, &error);
              },
          .destroy =
              [dpdk_port](rte_flow* flow) {
                rte_flow_error error{};
                rte_flow_destroy(dpdk_port, flow, &error);
              }};
}

std::string steer_by_port(const FlowCalls& calls, unsigned queues,
                          std::optional<std::uint16_t> vlan) {
  if (!std::has_single_bit(queues))
    return "rules on the D_Port's bits need a power of two of queues, not " +
           std::to_string(queues);
  std::vector<rte_flow*> made;
  std::string refused;
  for (unsigned queue = 0; queue < queues && refused.empty(); ++queue) {
    const Rule rule(queue, queues, vlan);
    rte_flow_error error{};
    const int result =
        calls.validate(rule.attributes, rule.pattern.data(), rule.actions.data(), error);
    if (result != 0) {
      refused = refusal("validate", result, error);
      break;
    }
    rte_flow* const flow =
        calls.create(rule.attributes, rule.pattern.data(), rule.actions.data(), error);
    if (flow == nullptr) {
      refused = refusal("create", rte_errno, error);
    } else {
      made.push_back(flow);
    }
  }
  if (refused.empty()) return "";
  for (rte_flow* const flow : made) calls.destroy(flow);
  return refused;
}

}  // namespace stp::port
