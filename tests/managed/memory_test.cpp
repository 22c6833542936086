// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/memory.h"

#include <cstdint>

#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

using Memories = OnScriptedLink;

TEST_F(Memories, ContainsWhatIsInItAndNothingElse) {
  const auto memory = this->memory(STM_LOCAL_WRITE);
  const auto* const begin = bytes.data();
  const auto size = bytes.size();
  EXPECT_TRUE(memory->contains(begin, size));
  EXPECT_TRUE(memory->contains(begin + size, 0));
  EXPECT_FALSE(memory->contains(begin, size + 1));
  EXPECT_FALSE(memory->contains(begin + 1, size));
  EXPECT_FALSE(memory->contains(begin + size, 1));
  EXPECT_FALSE(memory->contains(begin - 1, 1));
  EXPECT_FALSE(memory->contains(begin + 1, SIZE_MAX)) << "the end would be before the beginning";
}

TEST_F(Memories, AreBoundToWholePagesWithTheSameNamesOnEachEndpoint) {
  const EndpointId ends[] = {endpoint(), endpoint()};
  const auto memory = bound(STM_LOCAL_WRITE);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bound_size() % 4096, 0U);
  EXPECT_GE(memory->bound_size(), bytes.size());
  const auto maps = link->sent(Kind::kMap);
  ASSERT_EQ(maps.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(maps[i].endpoint, ends[i / 2]);
    EXPECT_EQ(maps[i].base, maps[0].base);
    EXPECT_EQ(maps[i].direction,
              static_cast<std::uint32_t>(i % 2 == 0 ? Direction::kTransmit : Direction::kReceive));
  }
  const auto landing = memory->landing(ends[1], bytes.data() + 5, 6);
  EXPECT_EQ(landing.at, memory->at(bytes.data() + 5));
  EXPECT_EQ(landing.length, 6U);
  EXPECT_NE(landing.mx, memory->landing(ends[0], bytes.data(), 1).mx);
}

TEST_F(Memories, WhatIsOnlyReadIsNothingThatAPeerCanReach) {
  const auto to = endpoint();
  const auto memory = bound(STM_LOCAL_READ);
  ASSERT_TRUE(memory);
  EXPECT_FALSE(memory->writable());
  EXPECT_EQ(memory->receive_region(to), kNoneId);
  EXPECT_EQ(memory->landing(to, bytes.data(), 1).mx, 0U);
  EXPECT_EQ(link->count(Kind::kMap), 1U);
  EXPECT_EQ(link->count(Kind::kAllocMx), 0U);
}

// Whichever request is refused: all that was mapped before is unmapped, and its names are free.
TEST_F(Memories, ThatCannotBeBoundLeaveNothingBehind) {
  for (int i = 0; i < 2; ++i) endpoint();
  for (std::size_t fails = 0; fails < 6; ++fails) {
    link->requests.clear();
    link->refuse = [&](const auto& request) {
      const bool binds = request.kind == Kind::kMap || request.kind == Kind::kAllocMx;
      return binds && link->count(Kind::kMap) + link->count(Kind::kAllocMx) == fails + 1 ? -ENOSPC
                                                                                         : 0;
    };
    const auto memory = this->memory(STM_LOCAL_WRITE);
    EXPECT_EQ(add(memory), -ENOSPC);
    const std::size_t mapped[] = {0, 1, 2, 2, 3, 4};
    EXPECT_EQ(link->count(Kind::kUnmap), mapped[fails]);
    for (const auto each : domain->endpoints()) EXPECT_EQ(memory->receive_region(each), kNoneId);
  }
  const auto first = link->sent(Kind::kMap).front().base;
  link->refuse = {};
  link->requests.clear();
  ASSERT_TRUE(bound(STM_LOCAL_WRITE));
  EXPECT_EQ(link->sent(Kind::kMap).front().base, first) << "the names were free again";
}

TEST_F(Memories, AreUnboundWhenNoFrameUsesThemAnyMore) {
  endpoint();
  const auto memory = bound(STM_LOCAL_READ);
  ASSERT_TRUE(memory);
  unsigned busy = 3;
  link->refuse = [&busy](const auto& request) {
    return request.kind == Kind::kUnmap && busy-- != 0 ? -EINPROGRESS : 0;
  };
  const std::lock_guard control(domain->control_mutex());
  memory->unbind();
  EXPECT_EQ(link->count(Kind::kUnmap), 4U);
  memory->unbind();
  EXPECT_EQ(link->count(Kind::kUnmap), 4U) << "once only";
}

TEST_F(Memories, OfLongBuffersAreAlignedToThem) {
  const auto large = open(link, 16);
  const auto size = std::size_t{1} << 16;
  std::vector<std::byte> room(3 * size);
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(room.data()) + size - 1) / size * size);
  const std::lock_guard control(large->control_mutex());
  const auto bind = [&](std::byte* at, std::size_t length) {
    Memory memory(large, {at, length}, STM_LOCAL_READ);
    const auto error = memory.bind();
    memory.unbind();
    return error;
  };
  EXPECT_EQ(bind(aligned, size), 0);
  EXPECT_EQ(bind(aligned, size - 1), -EINVAL);
  EXPECT_EQ(bind(aligned + 4096, size), -EINVAL);
}

TEST_F(Memories, ThatAreNotThereAreNotBound) {
  endpoint();
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{4096});
  EXPECT_EQ(add(std::make_shared<Memory>(domain, MutableBytes{nowhere, 10}, STM_LOCAL_READ)),
            -EFAULT);
  EXPECT_EQ(link->count(Kind::kMap), 0U);
}

TEST_F(Memories, TakeNoMoreNamesThanTheDomainHas) {
  {
    const std::lock_guard guard(domain->mutex());
    ASSERT_TRUE(domain->bufx_space().take(BufxSpace::kEntries - 1));
  }
  EXPECT_EQ(add(memory(STM_LOCAL_READ)), -EDQUOT);
  EXPECT_EQ(link->count(Kind::kMap), 0U);
}

}  // namespace
}  // namespace stp::managed
