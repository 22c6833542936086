// SPDX-License-Identifier: BSD-3-Clause
// A device that is removed, or that requires a reset, as DPDK reports it. Uses a virtual device,
// and reports the events as a driver would.
#define ALLOW_EXPERIMENTAL_API
#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "tests/dpdk_port/link_pair.h"

// Functions for drivers, which no installed DPDK header declares.
extern "C" {
struct rte_eth_dev;
rte_eth_dev* rte_eth_dev_allocated(const char* name);
int rte_eth_dev_callback_process(rte_eth_dev* device, rte_eth_event_type event, void* result);
}

namespace stp::port {
namespace {

class DeviceEvents : public ::testing::Test {
 protected:
  DeviceEvents() { end.open("vdev:net_ring0"); }
  static void tell(rte_eth_event_type event) {
    rte_eth_dev_callback_process(rte_eth_dev_allocated("net_ring0"), event, nullptr);
  }
  bool becomes(LinkState state) {
    return turn_until(end, end, [&] { return end.port->state() == state; });
  }
  void expect_frames_go() {
    end.engine.received.clear();
    end.engine.send(make_frame(MacAddr{{2, 0, 0, 0, 0, 0x99}}, end.mac(), 200));
    EXPECT_TRUE(turn_until(end, end, [&] { return !end.engine.received.empty(); }));
  }
  LinkEnd end;
};

TEST_F(DeviceEvents, OneThatIsPulledIsLetGoAndTakenUpWhenItIsBack) {
  EXPECT_TRUE(becomes(LinkState::kUp));
  const MacAddr mac = end.mac();
  tell(RTE_ETH_EVENT_INTR_RMV);
  end.turn();
  EXPECT_EQ(end.port->state(), LinkState::kGone);
  EXPECT_EQ(rte_eth_dev_allocated("net_ring0"), nullptr);  // or the kernel would wait for it
  EXPECT_NE(end.port->trouble().find("net_ring0 has been removed"), std::string::npos);
  for (int i = 0; i < 100; ++i) {
    end.engine.send(make_frame(mac, mac, 200));
    end.turn();
  }
  EXPECT_EQ(counter(*end.port, "link_tx_packets"), 0U);
  EXPECT_TRUE(becomes(LinkState::kUp));
  EXPECT_EQ(end.mac(), mac);
  EXPECT_EQ(end.port->trouble(), "");
  expect_frames_go();
}

TEST_F(DeviceEvents, ARequestOfTheKernelsToGiveItBackIsFollowed) {
  rte_dev_event_callback_process("net_ring0", RTE_DEV_EVENT_REMOVE);
  end.turn();
  EXPECT_EQ(end.port->state(), LinkState::kGone);
  EXPECT_EQ(rte_eth_dev_allocated("net_ring0"), nullptr);
  EXPECT_TRUE(becomes(LinkState::kUp));
  tell(RTE_ETH_EVENT_INTR_RMV);  // handled the second time, too
  end.turn();
  EXPECT_EQ(end.port->state(), LinkState::kGone);
}

// Like most devices, net_ring cannot be reset: it is closed and opened again.
TEST_F(DeviceEvents, OneThatWantsToBeResetGoesOnAfterwards) {
  tell(RTE_ETH_EVENT_INTR_RESET);
  end.turn();
  EXPECT_TRUE(becomes(LinkState::kUp));
  expect_frames_go();
}

}  // namespace
}  // namespace stp::port
