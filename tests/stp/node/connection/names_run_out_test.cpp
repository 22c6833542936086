// SPDX-License-Identifier: BSD-3-Clause
// Ports and Mx have 16 bits: what happens when all of them are in use.
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

constexpr unsigned kMost = 0xffff;  // 0 is not used

class Names : public TwoNodes {};

// protocol: 5.3
TEST_F(Names, a_connection_without_a_free_port_is_refused_until_one_ends) {
  constexpr ChannelGeometry kSmallest{1, 1};
  const auto endpoint = a.open({.slots = 1, .credits = 1});
  ChannelMemory memory(kSmallest);  // shared by all, because none is read
  const auto connect = [&] {
    VcId id = kNoneId;
    const auto error = a.node.connect(endpoint, kMacB, 3000, memory.data(), 0, id, now);
    return error != 0 ? VcId{0} : id;
  };
  VcId last = kNoneId;
  for (unsigned i = 0; i < kMost; ++i) ASSERT_NE(last = connect(), 0U) << i;
  VcId none = kNoneId;
  EXPECT_EQ(a.node.connect(endpoint, kMacB, 3000, memory.data(), 0, none, now), -ENOSPC);
  ASSERT_EQ(a.node.close(last, true, now), 0);
  EXPECT_NE(connect(), 0U);
}

// protocol: 7.4
TEST_F(Names, a_region_without_a_free_mx_is_told_so_until_one_is_freed) {
  Buffers memory(12, 1);
  const auto piece = memory.all();
  const auto endpoint = a.open({.bufsize = 12});
  RegionId region = kNoneId;
  ASSERT_EQ(a.node.map(endpoint, Direction::kReceive, 0, {&piece, 1}, region), 0);
  std::uint16_t mx = 0;
  for (unsigned i = 0; i < kMost; ++i)
    ASSERT_EQ(a.node.alloc_mx(region, kNoneId, permit::kAll, mx), 0) << i;
  EXPECT_EQ(a.node.alloc_mx(region, kNoneId, permit::kAll, mx), -ENOSPC);
  ASSERT_EQ(a.node.free_mx(endpoint, 77), 0);
  EXPECT_EQ(a.node.alloc_mx(region, kNoneId, permit::kAll, mx), 0);
  EXPECT_EQ(mx, 77U);
}

}  // namespace
}  // namespace stp::test
