// SPDX-License-Identifier: BSD-3-Clause
// Shares that rest: what the program does with their pages meanwhile.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "libst/client/shared_pages.h"

namespace stp::client::shared_pages_rest_test {
namespace {

constexpr std::size_t kPage = 4096, kSize = 4 * kPage;

// Memory of its own pages.
class Mapped {
 public:
  explicit Mapped(std::size_t pages)
      : size_(pages * kPage),
        data_(static_cast<std::byte*>(
            ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Mapped() { ::munmap(data_, size_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  [[nodiscard]] MutableBytes bytes() const { return {data_, size_}; }

 private:
  std::size_t size_;
  std::byte* data_;
};

class Resting : public testing::Test {
 protected:
  Resting()
      : base(static_cast<std::byte*>(
            ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(base, 1, kSize);
  }
  ~Resting() override { ::munmap(base, kSize); }
  void SetUp() override {
    SharedPages::instance();  // keeps the list of areas open
    if (!resumable(bytes())) GTEST_SKIP() << "the kernel does not tell (before Linux 6.11)";
    const auto all = bytes();
    ASSERT_EQ(SharedPages::instance().share({&all, 1}, {&all, 1}, *share), 0);
  }
  [[nodiscard]] MutableBytes bytes() const { return {base + 100, kSize - 200}; }
  static bool resumable(Bytes memory) {
    std::vector<AreaAt> areas;
    return areas_at(memory, areas);
  }
  [[nodiscard]] bool resume() const {
    std::vector<AreaAt> areas;
    return areas_at(bytes(), areas) && share->resume(areas);
  }
  // Others take the place of `pages` pages.
  void replace(std::size_t from, std::size_t pages, int flags = MAP_PRIVATE) const {
    ASSERT_EQ(::mmap(base + from * kPage, pages * kPage, PROT_READ | PROT_WRITE,
                     flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              base + from * kPage);
  }
  // Whether a child sees what the parent writes after the fork.
  [[nodiscard]] bool child_sees_writes() const {
    int gate[2];
    EXPECT_EQ(::pipe(gate), 0);
    base[kPage] = std::byte{1};
    const auto child = ::fork();
    if (child == 0) {
      char byte = 0;
      if (::read(gate[0], &byte, 1) != 1) ::_exit(2);
      ::_exit(base[kPage] == std::byte{1} ? 0 : 1);
    }
    base[kPage] = std::byte{2};
    EXPECT_EQ(::write(gate[1], "", 1), 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    ::close(gate[0]);
    ::close(gate[1]);
    return status != 0;
  }

  std::byte* const base;
  std::shared_ptr<Share> share = std::make_shared<Share>();
};

TEST_F(Resting, ResumesWhereItsPagesAre) {
  for (int round = 0; round < 3; ++round) {
    share->rest();
    EXPECT_TRUE(resume());
  }
}

TEST_F(Resting, OtherPagesEndIt) {
  for (std::size_t from = 0; from < 4; ++from) {
    const auto all = bytes();
    share = std::make_shared<Share>();
    ASSERT_EQ(SharedPages::instance().share({&all, 1}, {&all, 1}, *share), 0);
    share->rest();
    replace(from, 1);
    EXPECT_FALSE(resume()) << from;
  }
}

TEST_F(Resting, PagesOfAnotherFileEndIt) {
  share->rest();
  replace(0, 4, MAP_SHARED);
  EXPECT_FALSE(resume());
}

// The same file, but not at the same place.
TEST_F(Resting, PagesInAnotherOrderEndIt) {
  share->rest();
  const auto fd = share->parts.front().memory->fd();
  ASSERT_NE(::mmap(base, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, kPage),
            MAP_FAILED);
  EXPECT_FALSE(resume());
}

TEST_F(Resting, AForkEndsItAndTheChildHasACopy) {
  share->rest();
  EXPECT_FALSE(child_sees_writes());
  EXPECT_FALSE(resume());
}

TEST_F(Resting, WhatResumesIsLentAgain) {
  share->rest();
  ASSERT_TRUE(resume());
  const auto child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  share->rest();
  EXPECT_TRUE(resume()) << "a fork while it was lent ends nothing";
}

class Moved : public Resting {
 protected:
  // Whether a child has the byte that was there at the fork, and keeps it.
  [[nodiscard]] static bool child_has_copy(std::byte* at) {
    int gate[2];
    EXPECT_EQ(::pipe(gate), 0);
    *at = std::byte{1};
    const auto child = ::fork();
    if (child == 0) {
      unsigned char present = 0;
      char byte = 0;
      const auto page = reinterpret_cast<std::uintptr_t>(at) / kPage * kPage;
      if (::mincore(reinterpret_cast<void*>(page), kPage, &present) != 0) ::_exit(3);  // none there
      if (::read(gate[0], &byte, 1) != 1) ::_exit(2);
      ::_exit(*at == std::byte{1} ? 0 : 1);
    }
    *at = std::byte{2};
    EXPECT_EQ(::write(gate[1], "", 1), 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    ::close(gate[0]);
    ::close(gate[1]);
    return status == 0 && *at == std::byte{2};
  }
  void move() const {
    ASSERT_EQ(::mremap(base, kSize, kSize, MREMAP_MAYMOVE | MREMAP_FIXED, place.bytes().data()),
              place.bytes().data());
  }
  // Other memory at the old address.
  [[nodiscard]] MutableBytes others() const {
    replace(0, kSize / kPage);
    return bytes();
  }

  const Mapped place{kSize / kPage};
};

TEST_F(Moved, PagesOfAShareThatRestsAreCopiedToAChild) {
  share->rest();
  move();
  EXPECT_TRUE(child_has_copy(place.bytes().data() + kPage));
  EXPECT_TRUE(child_has_copy(place.bytes().data() + kPage));
}

TEST_F(Moved, PagesOfAShareThatHasEndedAreCopiedToAChild) {
  share.reset();
  move();
  EXPECT_TRUE(child_has_copy(place.bytes().data() + kPage));
}

TEST_F(Moved, PagesInWhosePlaceOthersAreSharedAreCopiedToAChild) {
  share->rest();
  move();
  const auto other = others();
  Share second;
  ASSERT_EQ(SharedPages::instance().share({&other, 1}, {&other, 1}, second), 0);
  EXPECT_TRUE(child_has_copy(place.bytes().data() + kPage));
  EXPECT_EQ(second.parts.front().memory->data()[2 * kPage], base[2 * kPage]);
  base[2 * kPage] = std::byte{77};
  EXPECT_EQ(second.parts.front().memory->data()[2 * kPage], std::byte{77}) << "it is shared still";
}

TEST_F(Moved, APartIsCopiedToAChildLikeTheRest) {
  share->rest();
  ASSERT_EQ(
      ::mremap(base + kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place.bytes().data()),
      place.bytes().data());
  EXPECT_TRUE(child_has_copy(place.bytes().data()));
  EXPECT_TRUE(child_has_copy(base + 2 * kPage));
  EXPECT_TRUE(child_has_copy(base));
}

// At most 16 separate pieces can be shared at once.
TEST_F(Resting, ManyDoNotCutOtherMemoryIntoPieces) {
  constexpr std::size_t kPages = 40;
  const Mapped whole(kPages);
  std::vector<std::shared_ptr<Share>> many;
  for (std::size_t i = 0; i < kPages; i += 2) {
    const auto page = whole.bytes().subspan(i * kPage, kPage);
    many.push_back(std::make_shared<Share>());
    ASSERT_EQ(SharedPages::instance().share({&page, 1}, {&page, 1}, *many.back()), 0);
    std::memset(page.data(), static_cast<int>(i + 1), kPage);
    many.back()->rest();
  }
  const auto all = whole.bytes();
  Share other;
  ASSERT_EQ(SharedPages::instance().share({&all, 1}, {&all, 1}, other), 0);
  EXPECT_EQ(other.parts.size(), 1U);
  EXPECT_EQ(other.pieces.size(), 1U);
  for (std::size_t i = 0; i < kPages; i += 2)
    EXPECT_EQ(other.parts.front().memory->data()[i * kPage], static_cast<std::byte>(i + 1));
  std::vector<AreaAt> areas;
  ASSERT_TRUE(areas_at(all, areas));
  for (const auto& each : many) EXPECT_FALSE(each->resume(areas));
}

TEST_F(Resting, WhatIsUsedIsLeftAsItIsByWhatNeedsFewerPieces) {
  constexpr std::size_t kPages = 40;
  const Mapped whole(kPages);
  const auto used = whole.bytes().first(kPage);
  Share first;
  ASSERT_EQ(SharedPages::instance().share({&used, 1}, {&used, 1}, first), 0);
  std::vector<std::shared_ptr<Share>> many;
  for (std::size_t i = 2; i < kPages; i += 2) {
    const auto page = whole.bytes().subspan(i * kPage, kPage);
    many.push_back(std::make_shared<Share>());
    ASSERT_EQ(SharedPages::instance().share({&page, 1}, {&page, 1}, *many.back()), 0);
    many.back()->rest();
  }
  const auto all = whole.bytes();
  Share other;
  ASSERT_EQ(SharedPages::instance().share({&all, 1}, {&all, 1}, other), 0);
  ASSERT_EQ(other.parts.size(), 2U);
  EXPECT_EQ(other.parts.front().memory, first.parts.front().memory);
}

TEST_F(Resting, TheEndOfAShareThatRestsLeavesOtherPagesAlone) {
  share->rest();
  replace(0, 4);
  base[kPage] = std::byte{7};
  ASSERT_EQ(::madvise(base, kSize, MADV_DONTFORK), 0);
  share.reset();
  const auto child = ::fork();
  if (child == 0) {
    unsigned char there = 0;
    const bool missing = ::mincore(base + kPage, kPage, &there) != 0 && errno == ENOMEM;
    ::_exit(missing ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the program excluded the pages, and they stay excluded";
}

}  // namespace
}  // namespace stp::client::shared_pages_rest_test
