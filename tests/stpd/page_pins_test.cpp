// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/region_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "libst/ipc/shared_memory.h"
#include "tests/host/usage.h"
#include "tests/stpd/huge_pages.h"

namespace stp::stpd {
namespace {

constexpr uid_t kPinning = 4'711;
constexpr auto kPiece = PagePins::kPiece;

class Pinned : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::makes_huge_pages()) GTEST_SKIP() << "the kernel makes no huge pages";
    if (!PagePins::possible()) GTEST_SKIP() << "the system permits no io_uring";
  }
  static std::shared_ptr<ipc::SharedMemory> memory_of(std::size_t size) {
    auto made = ipc::SharedMemory::lend("pinned", size);
    std::memset(made->data(), 1, size);
    return made;
  }
  static MutableBytes all(const ipc::SharedMemory& memory) {
    return {memory.data(), memory.size()};
  }
  const std::shared_ptr<host::Budgets> budgets_ = std::make_shared<host::Budgets>();
  const host::Account payer_ = budgets_->account(kPinning, false);
};

TEST_F(Pinned, APageKeepsItsPieceFromBeingMoved) {
  const auto memory = memory_of(ipc::page_size());
  {
    PagePins pins;
    ASSERT_EQ(pins.pin(payer_, all(*memory), 0, true), 0);
    EXPECT_FALSE(test::becomes_huge(memory->fd()));
    const PagePins moved = std::move(pins);
    EXPECT_FALSE(test::becomes_huge(memory->fd()));
  }
  EXPECT_TRUE(test::becomes_huge(memory->fd()));
}

TEST_F(Pinned, EachPieceOfAFileHasAPage) {
  const auto memory = memory_of(4 * kPiece);
  PagePins pins;
  // From the middle of the first piece to the beginning of the third.
  const auto from = kPiece / 2, to = 2 * kPiece + ipc::page_size();
  ASSERT_EQ(pins.pin(payer_, all(*memory).subspan(from, to - from), from, true), 0);
  for (const std::uint64_t piece : {0, 1, 2})
    EXPECT_FALSE(test::becomes_huge(memory->fd(), piece * kPiece)) << piece;
  EXPECT_TRUE(test::becomes_huge(memory->fd(), 3 * kPiece));
}

TEST_F(Pinned, MemoryThatIsMappedForReadingOnly) {
  const auto memory = memory_of(2 * kPiece);
  auto* const read = ::mmap(nullptr, 2 * kPiece, PROT_READ, MAP_SHARED, memory->fd(), 0);
  ASSERT_NE(read, MAP_FAILED);
  {
    PagePins pins;
    ASSERT_EQ(pins.pin(payer_, {static_cast<std::byte*>(read), 2 * kPiece}, 0, false), 0);
    EXPECT_FALSE(test::becomes_huge(memory->fd(), 0));
    EXPECT_FALSE(test::becomes_huge(memory->fd(), kPiece));
  }
  EXPECT_TRUE(test::becomes_huge(memory->fd(), 0));
  ::munmap(read, 2 * kPiece);
}

// More than one io_uring has room for; what is released makes room for others.
TEST_F(Pinned, ThereAreAsManyAsTheSystemPermits) {
  constexpr int kMany = 5'000;
  const auto memory = memory_of(ipc::page_size());
  for (int round = 0; round < 2; ++round) {
    std::vector<PagePins> pins(kMany);
    for (int i = 0; i < kMany; ++i)
      if (pins[static_cast<std::size_t>(i)].pin(payer_, all(*memory), 0, true) != 0)
        GTEST_SKIP() << "RLIMIT_MEMLOCK permits " << i << " pages";
    EXPECT_FALSE(test::becomes_huge(memory->fd()));
  }
  EXPECT_TRUE(test::becomes_huge(memory->fd()));
}

// A user may have the two files that there are: one for the pages that it lends for writing, and
// one for each memory that it lends for reading only.
TEST(PinnedPages, TakeFilesOfTheirUser) {
  if (!PagePins::possible()) GTEST_SKIP() << "the system permits no io_uring";
  const auto budgets = std::make_shared<host::Budgets>();
  budgets->set_total(host::Resource::kFiles, 2);
  const auto payer = budgets->account(kPinning, false);
  const auto memory = ipc::SharedMemory::lend("pinned", 2 * ipc::page_size());
  std::memset(memory->data(), 1, memory->size());
  const MutableBytes all{memory->data(), memory->size()};
  {
    PagePins written, more, read, too_many;
    ASSERT_EQ(written.pin(payer, all, 0, true), 0);
    ASSERT_EQ(more.pin(payer, all, 0, true), 0);
    EXPECT_EQ(host::used(*budgets, host::Resource::kFiles), 1U);
    ASSERT_EQ(read.pin(payer, all, 0, false), 0);
    EXPECT_EQ(host::used(*budgets, host::Resource::kFiles), 2U);
    EXPECT_EQ(too_many.pin(payer, all, 0, false), -EDQUOT);
    ASSERT_EQ(more.pin(payer, all, 0, true), 0);
  }
  EXPECT_EQ(host::used(*budgets, host::Resource::kFiles), 0U);
}

}  // namespace
}  // namespace stp::stpd
