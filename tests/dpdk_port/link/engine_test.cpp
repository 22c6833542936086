// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/engine.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace stp::port {
namespace {

std::vector<std::byte> frame_with(std::initializer_list<unsigned> after_addresses) {
  std::vector<std::byte> frame(12);
  for (const unsigned octet : after_addresses) frame.push_back(std::byte(octet));
  return frame;
}

TEST(Vlan, IsThatOfTheTag) {
  EXPECT_EQ(vlan_of(frame_with({0x81, 0x81, 0, 7}), {}), 0);
  EXPECT_EQ(vlan_of(frame_with({0x81, 0x00, 0xe1, 0x23, 0x81, 0x81}), {}), 0x123);
  EXPECT_EQ(vlan_of(frame_with({0x81, 0x00, 0xe0, 0x00, 0x81, 0x81}), {}), 0);
  EXPECT_EQ(vlan_of(frame_with({0x88, 0xa8, 0x00, 0x05, 0x81, 0x81}), {}), std::nullopt);
}

TEST(Vlan, ATagThatTheDriverHasTakenOutCounts) {
  const auto frame = frame_with({0x81, 0x81, 0, 7});
  EXPECT_EQ(vlan_of(frame, std::uint16_t{0x2007}), 7);
  EXPECT_TRUE(is_of_vlan(frame, std::uint16_t{7}, std::uint16_t{7}));
  EXPECT_FALSE(is_of_vlan(frame, std::uint16_t{7}, {}));
  EXPECT_FALSE(is_of_vlan(frame, {}, std::uint16_t{7}));
  EXPECT_TRUE(is_of_vlan(frame, {}, {}));
}

TEST(Vlan, AFrameThatEndsInItsTagBelongsToNoLink) {
  for (std::size_t length = 0; length < 18; ++length) {
    auto frame = frame_with({0x81, 0x00, 0x00, 0x07, 0x81, 0x81});
    frame.resize(length);
    EXPECT_FALSE(is_of_vlan(frame, {}, std::uint16_t{7})) << length;
    if (length < 14) continue;
    EXPECT_FALSE(is_of_vlan(frame, {}, {})) << length;
  }
}

}  // namespace
}  // namespace stp::port
