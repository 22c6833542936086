// SPDX-License-Identifier: BSD-3-Clause
// The rules that a NIC is asked for, with a driver that only looks at them.
#include "dpdk_port/dpdk/device.h"

#include <gtest/gtest.h>
#include <rte_byteorder.h>

#include <cerrno>
#include <vector>

#include "stp/wire/layout.h"

namespace stp::port {
namespace {

struct Seen {
  std::uint16_t type = 0, offset = 0, queue = 0;
  std::optional<std::uint16_t> vlan;
  std::vector<unsigned> bits, mask;
};

class Driver {
 public:
  FlowCalls calls() {
    return {.validate =
                [this](const rte_flow_attr& attributes, const rte_flow_item*,
                       const rte_flow_action*, rte_flow_error& error) {
                  EXPECT_EQ(attributes.ingress, 1U);
                  ++validated;
                  if (validated <= accepts) return 0;
                  error.message = message;
                  return -ENOTSUP;
                },
            .create =
                [this](const rte_flow_attr&, const rte_flow_item* items,
                       const rte_flow_action* actions, rte_flow_error& error) {
                  error.message = message;
                  if (rules.size() == creates) return static_cast<rte_flow*>(nullptr);
                  rules.push_back(see(items, actions));
                  return reinterpret_cast<rte_flow*>(rules.size());
                },
            .destroy = [this](rte_flow*) { ++destroyed; }};
  }
  static Seen see(const rte_flow_item* item, const rte_flow_action* action) {
    Seen seen;
    for (; item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
      if (item->type == RTE_FLOW_ITEM_TYPE_ETH) {
        seen.type = rte_be_to_cpu_16(static_cast<const rte_flow_item_eth*>(item->spec)->type);
      } else if (item->type == RTE_FLOW_ITEM_TYPE_VLAN) {
        const auto* const tag = static_cast<const rte_flow_item_vlan*>(item->spec);
        seen.vlan = rte_be_to_cpu_16(tag->tci);
        EXPECT_EQ(rte_be_to_cpu_16(tag->inner_type), wire::kEtherType);
      } else if (item->type == RTE_FLOW_ITEM_TYPE_RAW) {
        const auto* const raw = static_cast<const rte_flow_item_raw*>(item->spec);
        const auto* const mask = static_cast<const rte_flow_item_raw*>(item->mask);
        EXPECT_EQ(raw->relative, 1U) << "to the end of the Ethernet header";
        seen.offset = static_cast<std::uint16_t>(raw->offset);
        seen.bits.assign(raw->pattern, raw->pattern + raw->length);
        seen.mask.assign(mask->pattern, mask->pattern + raw->length);
      }
    }
    EXPECT_EQ(action[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
    EXPECT_EQ(action[1].type, RTE_FLOW_ACTION_TYPE_END);
    seen.queue = static_cast<const rte_flow_action_queue*>(action[0].conf)->index;
    return seen;
  }

  const char* message = "not this one";
  unsigned accepts = 100, validated = 0, destroyed = 0;
  std::size_t creates = 100;
  std::vector<Seen> rules;
};

TEST(FlowSteering, EachQueueGetsThePortsOfItsShard) {
  Driver driver;
  EXPECT_EQ(steer_by_port(driver.calls(), 4, std::nullopt), "");
  ASSERT_EQ(driver.rules.size(), 4U);
  for (unsigned queue = 0; queue < 4; ++queue) {
    const Seen& rule = driver.rules[queue];
    EXPECT_EQ(rule.queue, queue);
    EXPECT_EQ(rule.type, wire::kEtherType);
    EXPECT_EQ(rule.offset, wire::at::kDPort);
    EXPECT_EQ(rule.bits, (std::vector<unsigned>{0, queue})) << "D_Port modulo 4, big-endian";
    EXPECT_EQ(rule.mask, (std::vector<unsigned>{0, 3}));
  }
  EXPECT_EQ(driver.destroyed, 0U);
}

TEST(FlowSteering, ATagStandsBeforeTheHeader) {
  Driver driver;
  EXPECT_EQ(steer_by_port(driver.calls(), 2, 7), "");
  ASSERT_EQ(driver.rules.size(), 2U);
  EXPECT_EQ(driver.rules[1].type, wire::kVlanEtherType);
  EXPECT_EQ(driver.rules[1].vlan, 7);
}

TEST(FlowSteering, WhatADriverRefusesIsTold) {
  Driver driver;
  driver.accepts = 0;
  const std::string why = steer_by_port(driver.calls(), 2, std::nullopt);
  EXPECT_NE(why.find("validate: not this one"), std::string::npos) << why;
  EXPECT_TRUE(driver.rules.empty());
  driver.message = nullptr;
  EXPECT_NE(steer_by_port(driver.calls(), 2, std::nullopt).find("supported"), std::string::npos);
}

// As net_tap on a kernel without the modules for it: the rules are valid, and cannot be made.
TEST(FlowSteering, RulesThatCannotBeMadeLeaveNoneBehind) {
  Driver driver;
  driver.creates = 3;
  const std::string why = steer_by_port(driver.calls(), 4, std::nullopt);
  EXPECT_NE(why.find("create: not this one"), std::string::npos) << why;
  EXPECT_EQ(driver.destroyed, 3U);
}

TEST(FlowSteering, OtherNumbersThanPowersOfTwoAreNotAskedFor) {
  Driver driver;
  EXPECT_NE(steer_by_port(driver.calls(), 3, std::nullopt).find("power of two"), std::string::npos);
  EXPECT_EQ(driver.validated, 0U);
}

}  // namespace
}  // namespace stp::port
