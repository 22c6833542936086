// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "libst/client/shared_pages.h"

namespace stp::client::address_space_test {
namespace {

constexpr std::size_t kPage = 4096, kPages = 6;

class AddressSpace : public testing::Test {
 protected:
  void SetUp() override {
    SharedPages::instance();  // keeps the list of areas open
    std::vector<AreaAt> areas;
    static const std::byte here{};
    if (!areas_at({&here, 1}, areas))
      GTEST_SKIP() << "the kernel does not tell (before Linux 6.11)";
  }
  AddressSpace()
      : base(static_cast<std::byte*>(::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~AddressSpace() override { ::munmap(base, kPages * kPage); }
  [[nodiscard]] Bytes bytes() const { return {base + 10, kPages * kPage - 20}; }

  std::byte* const base;
  std::vector<AreaAt> areas;
};

TEST_F(AddressSpace, AreasAreToldInOrderWithTheirRights) {
  ASSERT_EQ(::mprotect(base + 2 * kPage, kPage, PROT_READ), 0);
  ASSERT_TRUE(areas_at(bytes(), areas));
  ASSERT_EQ(areas.size(), 3U);
  EXPECT_TRUE(areas[0].readable && areas[0].writable && !areas[0].shared);
  EXPECT_TRUE(areas[1].readable && !areas[1].writable);
  EXPECT_EQ(areas[1].begin, reinterpret_cast<std::uintptr_t>(base + 2 * kPage));
  EXPECT_EQ(areas[1].end, areas[2].begin);
  EXPECT_TRUE(areas[2].writable);
}

TEST_F(AddressSpace, AHoleIsSeen) {
  ASSERT_EQ(::munmap(base + 3 * kPage, kPage), 0);
  EXPECT_FALSE(areas_at(bytes(), areas));
  areas.clear();
  EXPECT_TRUE(areas_at(bytes().first(2 * kPage), areas));
  areas.clear();
  EXPECT_FALSE(areas_at({base + 3 * kPage, 1}, areas));
}

TEST_F(AddressSpace, TheFileAndThePlaceInItAreTold) {
  const auto memory = ipc::SharedMemory::lend("test", kPages * kPage);
  ASSERT_NE(memory, nullptr);
  ASSERT_NE(
      ::mmap(base + kPage, 2 * kPage, PROT_READ, MAP_SHARED | MAP_FIXED, memory->fd(), 3 * kPage),
      MAP_FAILED);
  ASSERT_TRUE(areas_at({base + 2 * kPage, kPage}, areas));
  ASSERT_EQ(areas.size(), 1U);
  struct stat status {};
  ASSERT_EQ(::fstat(memory->fd(), &status), 0);
  EXPECT_TRUE(areas[0].shared);
  EXPECT_EQ(areas[0].inode, status.st_ino);
  EXPECT_EQ(areas[0].device, status.st_dev);
  EXPECT_EQ(areas[0].begin, reinterpret_cast<std::uintptr_t>(base + kPage));
  EXPECT_EQ(areas[0].offset, 3 * kPage);
}

// Of one piece of memory each, what is asked for and what the list of all says.
TEST_F(AddressSpace, AreasThatAreAskedForAreThoseOfTheList) {
  ASSERT_EQ(::mprotect(base, kPage, PROT_READ), 0);
  const std::byte on_stack{};
  const auto on_heap = std::make_unique<std::byte>();
  const auto* const code = reinterpret_cast<const std::byte*>(&areas_of);
  for (const auto* const at : {code, &on_stack, static_cast<const std::byte*>(on_heap.get()),
                               static_cast<const std::byte*>(base + 10)}) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    std::vector<MappedArea> told, listed;
    ASSERT_EQ(areas_of({const_cast<std::byte*>(at), 1}, told), 0);
    ASSERT_TRUE(areas_where(
        [&](const MappedArea& each) { return each.begin <= address && address < each.end; },
        listed));
    ASSERT_EQ(told.size(), 1U);
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(told[0].begin, address);
    EXPECT_EQ(told[0].offset, listed[0].offset + (address - listed[0].begin));
    EXPECT_EQ(told[0].inode, listed[0].inode);
    EXPECT_EQ(told[0].name, listed[0].name);
    const auto rights = [](const MappedArea& area) {
      return std::array{area.readable, area.writable, area.executable, area.shared};
    };
    EXPECT_EQ(rights(told[0]), rights(listed[0]));
  }
}

// Memory that is registered may only be reserved.
TEST_F(AddressSpace, WhatIsCheckedNeedNotBePresent) {
  EXPECT_EQ(check_access(bytes(), true), 0);
  std::array<unsigned char, kPages> present{};
  ASSERT_EQ(::mincore(base, kPages * kPage, present.data()), 0);
  EXPECT_EQ(std::ranges::count(present, 0), std::ptrdiff_t{kPages});
  ASSERT_EQ(::mprotect(base + 2 * kPage, kPage, PROT_READ), 0);
  EXPECT_EQ(check_access(bytes(), true), -EFAULT);
  EXPECT_EQ(check_access(bytes(), false), 0);
  ASSERT_EQ(::munmap(base + 3 * kPage, kPage), 0);
  EXPECT_EQ(check_access(bytes(), false), -EFAULT);
}

TEST_F(AddressSpace, MoreAreasThanItLooksAtAreNotTold) {
  constexpr std::size_t kMany = 2 * kMostAreas;
  auto* const many = static_cast<std::byte*>(
      ::mmap(nullptr, kMany * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t i = 0; i < kMany; i += 2)
    ASSERT_EQ(::mprotect(many + i * kPage, kPage, PROT_READ), 0);
  EXPECT_FALSE(areas_at({many, kMany * kPage}, areas));
  areas.clear();
  EXPECT_TRUE(areas_at({many, (kMostAreas - 1) * kPage}, areas));
  ::munmap(many, kMany * kPage);
}

}  // namespace
}  // namespace stp::client::address_space_test
