// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/mapped_memory.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

class MappedMemoryTest : public ::testing::Test {
 protected:
  static constexpr unsigned kBufsize = 12;
  Mechanisms with;
  Buffers buffers{kBufsize, 2};
  RegionId region = kNoneId;
  std::uint16_t mx = 0;

  void SetUp() override {
    auto& endpoint = with.vcs.endpoint;
    endpoint.config.bufsize = kBufsize;
    endpoint.receive = BufxRange(0, 16, kBufsize);
    const auto all = buffers.all();
    ASSERT_EQ(with.memory.map(endpoint, Direction::kReceive, 4, {&all, 1}, region), 0);
  }
  DropReason check(const Vc& vc, std::uint32_t bufx, std::byte*& memory) {
    wire::Header named;
    named.mx = mx;
    named.bufx = bufx;
    named.offset = 8;
    return with.memory.check(vc, named, 16, permit::kData, memory);
  }
};

// protocol: 7.3, 7.6
TEST_F(MappedMemoryTest, an_mx_names_memory_for_its_connection_until_that_ends) {
  auto &vc = with.open(1), &other = with.open(2);
  ASSERT_EQ(with.memory.alloc_mx(region, vc.id, permit::kData, mx), 0);
  std::byte* memory = nullptr;
  EXPECT_EQ(check(vc, 5, memory), DropReason::kNone);
  EXPECT_EQ(memory, buffers.data() + (1U << kBufsize) + 8);
  EXPECT_EQ(check(vc, 6, memory), DropReason::kBadBufx);
  EXPECT_EQ(check(other, 5, memory), DropReason::kMxNotOwned);
  with.memory.abandon(vc.mxs);
  const auto gone = with.vcs.table.take(vc);
  EXPECT_EQ(check(other, 5, memory), DropReason::kBadMx);
}

// protocol: 7.5
TEST_F(MappedMemoryTest, who_unmaps_is_told_when_no_frame_reads_the_memory) {
  auto& vc = with.open(1);
  ASSERT_EQ(with.memory.alloc_mx(region, kNoneId, permit::kData, mx), 0);
  with.memory.attach(region);
  with.memory.attach(region);
  ASSERT_EQ(with.memory.unmap(region), 0);
  EXPECT_EQ(with.memory.unmap(region), -EBADF);
  std::byte* memory = nullptr;
  EXPECT_NE(check(vc, 5, memory), DropReason::kNone);
  EXPECT_TRUE(with.memory.detach(region));
  EXPECT_EQ(with.events(Event::Kind::kRegionGone), 0U);
  EXPECT_TRUE(with.memory.detach(region));
  EXPECT_EQ(with.events(Event::Kind::kRegionGone), 1U);
  EXPECT_EQ(with.vcs.endpoint.regions, 0U);
  EXPECT_FALSE(with.memory.detach(region)) << "given back twice";
}

TEST_F(MappedMemoryTest, an_mx_is_made_only_for_what_fits_together) {
  EXPECT_EQ(with.memory.alloc_mx(region + 1, kNoneId, permit::kData, mx), -EBADF);
  EXPECT_EQ(with.memory.alloc_mx(region, 12'345, permit::kData, mx), -EBADF);
  Endpoint another;
  auto& vc = with.open(1);
  vc.endpoint = &another;
  EXPECT_EQ(with.memory.alloc_mx(region, vc.id, permit::kData, mx), -EINVAL);
  vc.endpoint = &with.vcs.endpoint;
  ASSERT_EQ(with.memory.alloc_mx(region, vc.id, permit::kData, mx), 0);
  EXPECT_EQ(with.memory.free_mx(with.vcs.endpoint.id + 1, mx), -ERANGE);
  EXPECT_EQ(with.memory.free_mx(with.vcs.endpoint.id, mx), 0);
  EXPECT_EQ(with.memory.free_mx(with.vcs.endpoint.id, mx), -ERANGE);
}

}  // namespace
}  // namespace stp::test
