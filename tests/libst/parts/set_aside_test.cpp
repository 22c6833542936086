// SPDX-License-Identifier: BSD-3-Clause
// Pages that are made private for a fork, while another thread unmaps them or uses their addresses.
#include "libst/client/set_aside.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "libst/client/shared_pages.h"

namespace stp::client {
namespace {

constexpr std::size_t kPage = 4096, kSize = 4 * kPage;

class SetAsideTest : public testing::Test {
 protected:
  void SetUp() override {
    SharedPages::instance();  // keeps the list of areas open
    AreaAt area;
    if (!area_at(pages.begin, area)) GTEST_SKIP() << "the kernel does not tell (before Linux 6.11)";
    struct stat status {};
    ASSERT_EQ(::fstat(memory->fd(), &status), 0);
    place.inode = status.st_ino;
    std::memset(base, 1, kSize);
  }
  ~SetAsideTest() override { ::munmap(base, kSize); }
  [[nodiscard]] SetAside set_aside() const {
    return SetAside(pages, PROT_READ | PROT_WRITE, nullptr, place);
  }
  static bool is_mapped(const std::byte* at) {
    unsigned char there = 0;
    return ::mincore(const_cast<std::byte*>(at), kPage, &there) == 0;
  }

  std::shared_ptr<ipc::SharedMemory> memory = ipc::SharedMemory::lend("test", kSize);
  std::byte* const base = static_cast<std::byte*>(
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd(), 0));
  const Span pages{reinterpret_cast<std::uintptr_t>(base),
                   reinterpret_cast<std::uintptr_t>(base) + kSize};
  SetAside::Place place;
};

TEST_F(SetAsideTest, PagesBecomePrivate) {
  const auto aside = set_aside();
  EXPECT_FALSE(aside.has_gone());
  EXPECT_TRUE(aside.put_back());
  EXPECT_EQ(base[kPage], std::byte{1});
  base[kPage] = std::byte{2};
  EXPECT_EQ(memory->data()[kPage], std::byte{1});
}

TEST_F(SetAsideTest, PagesThatAreThereNoMoreAreNoFault) {
  ASSERT_EQ(::munmap(base, kSize), 0);
  const auto aside = set_aside();
  EXPECT_TRUE(aside.has_gone());
  EXPECT_TRUE(aside.put_back());
  EXPECT_FALSE(is_mapped(base));
  EXPECT_TRUE(SetAside::left_of(pages, place).empty());
}

TEST_F(SetAsideTest, AHoleIsNoFaultAndTheRestIsFound) {
  ASSERT_EQ(::munmap(base + kPage, kPage), 0);
  EXPECT_TRUE(set_aside().has_gone());
  EXPECT_FALSE(is_mapped(base + kPage));
  const auto left = SetAside::left_of(pages, place);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0], (Span{pages.begin, pages.begin + kPage}));
  EXPECT_EQ(left[1], (Span{pages.begin + 2 * kPage, pages.end}));
}

TEST_F(SetAsideTest, OtherPagesAtTheAddressesAreLeftAlone) {
  auto* const others =
      ::mmap(base, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(others, base);
  const auto aside = set_aside();
  EXPECT_TRUE(aside.has_gone());
  const auto child = ::fork();
  if (child == 0) {
    base[kPage] = std::byte{7};  // they are there, and shared
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(aside.put_back());
  EXPECT_EQ(base[kPage], std::byte{7});
}

}  // namespace
}  // namespace stp::client
