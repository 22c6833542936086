// SPDX-License-Identifier: BSD-3-Clause
// DPDK's virtual devices, by their names.
#include <gtest/gtest.h>

#include "tests/dpdk_port/link_pair.h"

namespace stp::port::vdev_test {
namespace {

constexpr MacAddr kElsewhere{{2, 0, 0, 0, 0, 0x99}};

TEST(Vdev, RingGivesBackWhatItIsSent) {
  LinkEnd end;
  end.open("vdev:net_ring0,mac=02:00:00:00:00:07");
  EXPECT_EQ(to_string(end.mac()), "02:00:00:00:00:07");
  EXPECT_EQ(end.port->info().driver, "net_ring");
  EXPECT_EQ(end.port->info().mtu, 1500U);
  EXPECT_FALSE(end.port->info().attaches);  // its frames wait in a ring, memory and all
  constexpr unsigned kFrames = 500;
  for (unsigned i = 0; i < kFrames; ++i)
    end.engine.send(make_frame(kElsewhere, end.mac(), 1514, i));
  EXPECT_TRUE(turn_until(end, end, [&] { return end.engine.received.size() >= kFrames; }));
  ASSERT_EQ(end.engine.received.size(), kFrames);
  EXPECT_EQ(end.engine.received.back(), make_frame(kElsewhere, end.mac(), 1514, kFrames - 1));
}

TEST(Vdev, MemoryThatIsAttachedAllTheSameIsCopiedForADriverThatKeepsFrames) {
  LinkEnd end;
  end.open("vdev:net_ring0");
  Frame memory = make_bytes(1024, 5);
  const Frame head = make_frame(kElsewhere, end.mac(), 54);
  const Frame whole = join(head, memory);
  end.engine.send_attached(head, memory, 8);
  end.turn();
  EXPECT_EQ(end.engine.returned[8], 1U);
  memory.assign(memory.size(), std::byte{0});  // does not change the frame
  EXPECT_TRUE(turn_until(end, end, [&] { return !end.engine.received.empty(); }));
  EXPECT_EQ(end.engine.received.at(0), whole);
}

TEST(Vdev, ADeviceWithoutAnAddressGetsOne) {
  LinkEnd end;
  end.open("vdev:net_ring0");
  EXPECT_FALSE(end.mac().is_zero());
  EXPECT_FALSE(end.mac().is_group());
}

TEST(Vdev, NullSwallowsAndNothingIsKept) {
  LinkEnd end;
  end.open("vdev:net_null0,no-rx=1");
  for (unsigned i = 0; i < 500; ++i) end.engine.send(make_frame(kElsewhere, end.mac(), 1514, i));
  while (end.turn() > 0) {
  }
  EXPECT_EQ(end.engine.waiting(), 0U);
  EXPECT_EQ(counter(*end.port, "tx_dropped"), 0U);
  EXPECT_EQ(counter(*end.port, "link_tx_packets"), 500U);
}

TEST(Vdev, ATurnEndsThoughFramesNeverDo) {
  LinkEnd end;
  end.open("vdev:net_null0");  // always has frames to receive
  EXPECT_LE(end.turn(), 2 * Loopback::kCapacity);
  EXPECT_FALSE(end.engine.received.empty());
}

TEST(Vdev, WhatHasComeIsReceivedBeforeSilenceIsJudged) {
  LinkEnd end;
  end.open("vdev:net_null0");
  end.engine.deadline = 1;  // long past, as if this thread had not run
  end.turn();
  EXPECT_EQ(end.engine.expired, 1U);
  EXPECT_GT(end.engine.received_when_expired, 0U);
}

TEST(Vdev, SeveralDevicesLiveInOneProcess) {
  LinkEnd ring, null;
  ring.open("vdev:net_ring0");
  null.open("vdev:net_null0");
  ring.engine.send(make_frame(kElsewhere, ring.mac(), 60));
  EXPECT_TRUE(turn_until(ring, ring, [&] { return !ring.engine.received.empty(); }));
  ring.port.reset();
  null.turn();
  EXPECT_FALSE(null.engine.received.empty());
}

TEST(Vdev, OneDeviceIsNotOpenedTwice) {
  LinkEnd first;
  first.open("vdev:net_null0");
  std::string error;
  EXPECT_FALSE(open_link("vdev:net_null0", error));
  EXPECT_NE(error.find("already uses"), std::string::npos) << error;
}

TEST(Vdev, AnUnknownDriverIsAnErrorThatNamesItAndTheRemedy) {
  std::string error;
  EXPECT_FALSE(open_link("vdev:net_nonsense0", error));
  EXPECT_NE(error.find("DPDK cannot open net_nonsense0"), std::string::npos) << error;
  EXPECT_NE(error.find("see the name (net_ring0, net_tap0)"), std::string::npos) << error;
}

TEST(Pci, AfterAVirtualDeviceItIsTooLate) {
  LinkEnd first;
  first.open("vdev:net_null0");
  std::string error;
  EXPECT_FALSE(open_link("pci:0000:3b:00.0", error));
  EXPECT_NE(error.find("open the pci: link first"), std::string::npos) << error;
}

}  // namespace
}  // namespace stp::port::vdev_test
