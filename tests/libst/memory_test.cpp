// SPDX-License-Identifier: BSD-3-Clause
// st_map, st_unmap, st_mx_alloc, st_mx_free.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

constexpr int kBufsize = 16'384;

class Memory : public ConnectedTest {
 protected:
  int map(int flags, void* ptr, int len, int base, int count) {
    return st_map(client_, flags, ptr, len, base, count, &region_, &mx_);
  }

  Buffer buffer_{16 * kBufsize};
  st_mhandle_t region_ = nullptr;
  int mx_ = -1;
};
STP_BOTH_WAYS(Memory);

TEST_P(Memory, LengthAndCountSayTheSameAndOneMayBeLeftOut) {
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), 4 * kBufsize, 0, 4), 0);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), 4 * kBufsize, 4, -1), 0);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), -1, 8, 4), 0);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), 4 * kBufsize, 12, 3), -EINVAL);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), -1, 12, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), 0, 12, 0), -EINVAL);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), -kBufsize, 12, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), -1, 12, -2), -EINVAL);
}

TEST_P(Memory, MisalignedMemoryIsInvalid) {
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data() + 1, kBufsize, 0, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data() + 4'096, kBufsize, 0, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), kBufsize + 1, 0, -1), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("16384"), std::string::npos);
}

TEST_P(Memory, ArgumentsThatMakeNoSenseAreInvalid) {
  EXPECT_EQ(map(0, buffer_.data(), kBufsize, 0, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX | ST_MAP_RX, buffer_.data(), kBufsize, 0, -1), -EINVAL);
  EXPECT_EQ(map(4, buffer_.data(), kBufsize, 0, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX, nullptr, kBufsize, 0, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), -1, 0, 65'537), -EINVAL);
  EXPECT_EQ(st_map(client_, ST_MAP_TX, buffer_.data(), kBufsize, 0, -1, nullptr, nullptr), -EINVAL);
}

TEST_P(Memory, BufxOutsideTheRangeOfTheOptionsAreOutOfRange) {
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), 2 * kBufsize, 65'535, -1), -ERANGE);
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), kBufsize, 65'536, -1), -ERANGE);
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), kBufsize, -5, -1), -ERANGE);
  EXPECT_EQ(std::string(st_strerror(-ERANGE)),
            "base -5 (Bufx 4294967291), count 1: not within the Bufx that the options set, 0 to "
            "65535");
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), kBufsize, 65'535, -1), 0);
}

TEST_P(Memory, ABufxHasOneMemoryAtATime) {
  ASSERT_EQ(map(ST_MAP_TX, buffer_.data(), 4 * kBufsize, 10, -1), 0);
  const auto first = region_;
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), 2 * kBufsize, 13, -1), -EBUSY);
  EXPECT_EQ(map(ST_MAP_RX, buffer_.data(), 2 * kBufsize, 13, -1), 0) << "another range";
  ASSERT_EQ(st_unmap(first), 0);
  EXPECT_EQ(map(ST_MAP_TX, buffer_.data(), 2 * kBufsize, 13, -1), 0);
}

TEST_P(Memory, MemoryThatIsNotThereIsAFaultAndNoCrash) {
  auto* const top = reinterpret_cast<void*>(~std::uintptr_t{kBufsize - 1});
  EXPECT_EQ(map(ST_MAP_TX, top, 4 * kBufsize, 0, -1), -EFAULT);
  // The mapping is followed by a hole.
  auto* const pages = static_cast<std::byte*>(
      ::mmap(nullptr, 8 * kBufsize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(pages) + kBufsize - 1) / kBufsize * kBufsize);
  ASSERT_EQ(::munmap(aligned + 2 * kBufsize, kBufsize), 0);
  EXPECT_EQ(map(ST_MAP_TX, aligned + 2 * kBufsize, kBufsize, 0, -1), -EFAULT);
  EXPECT_EQ(map(ST_MAP_TX, aligned, 4 * kBufsize, 0, -1), -EFAULT);
  EXPECT_EQ(map(ST_MAP_TX, aligned, 2 * kBufsize, 0, -1), 0);
  // Memory must be writable for receiving and readable for sending.
  ASSERT_EQ(::mprotect(aligned + 3 * kBufsize, kBufsize, PROT_READ), 0);
  EXPECT_EQ(map(ST_MAP_RX, aligned + 3 * kBufsize, kBufsize, 0, -1), -EFAULT);
  EXPECT_EQ(map(ST_MAP_TX, aligned + 3 * kBufsize, kBufsize, 9, -1), 0);
  ASSERT_EQ(::mprotect(aligned + 4 * kBufsize, kBufsize, PROT_NONE), 0);
  EXPECT_EQ(map(ST_MAP_TX, aligned + 4 * kBufsize, kBufsize, 10, -1), -EFAULT);
  client_.reset();
  // Not the hole, in which a thread may have mapped something meanwhile.
  ::munmap(pages, static_cast<std::size_t>(aligned + 2 * kBufsize - pages));
  ::munmap(aligned + 3 * kBufsize,
           static_cast<std::size_t>(pages + 8 * kBufsize - (aligned + 3 * kBufsize)));
}

// A program may reserve much more than it uses.
TEST_P(Memory, LongMemoryIsNotMadePresent) {
  if (GetParam() == Way::kThroughDaemon) GTEST_SKIP() << "stpd replaces the pages";
  constexpr int kCount = 2'048;
  constexpr std::size_t kLong = std::size_t{kCount} * kBufsize;
  auto* const pages = ::mmap(nullptr, kLong + kBufsize, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(pages) + kBufsize - 1) / kBufsize * kBufsize);
  ASSERT_EQ(map(ST_MAP_TX, aligned, -1, 0, kCount), 0) << st_strerror(-EFAULT);
  std::vector<unsigned char> present(kLong / 4'096);
  ASSERT_EQ(::mincore(aligned, kLong, present.data()), 0);
  EXPECT_EQ(std::count_if(present.begin(), present.end(), [](auto p) { return (p & 1) != 0; }), 0);
  client_.reset();
  ::munmap(pages, kLong + kBufsize);
}

TEST_P(Memory, AnMxIsGivenOnlyForReceiving) {
  ASSERT_EQ(map(ST_MAP_TX, buffer_.data(), kBufsize, 0, -1), 0);
  EXPECT_EQ(mx_, -1);
  int mx = -1;
  EXPECT_EQ(st_mx_alloc(connected_, region_, &mx), -EINVAL);
  ASSERT_EQ(map(ST_MAP_RX, buffer_.data(), kBufsize, 0, -1), 0);
  EXPECT_GT(mx_, 0);
  EXPECT_EQ(st_mx_alloc(connected_, region_, nullptr), -EINVAL);
  ASSERT_EQ(st_mx_alloc(connected_, region_, &mx), 0);
  EXPECT_NE(mx, mx_);
}

TEST_P(Memory, AnMxIsFreedOnceAndOnlyByTheConnectionItIsOf) {
  ASSERT_EQ(map(ST_MAP_RX, buffer_.data(), kBufsize, 0, -1), 0);
  int mx = -1;
  ASSERT_EQ(st_mx_alloc(connected_, region_, &mx), 0);
  EXPECT_EQ(st_mx_alloc(accepted_, region_, &mx), -EINVAL) << "memory of the other endpoint";
  EXPECT_EQ(st_mx_free(accepted_, mx), -ERANGE);
  EXPECT_EQ(st_mx_free(connected_, -1), -ERANGE);
  EXPECT_EQ(st_mx_free(connected_, 65'536), -ERANGE);
  EXPECT_EQ(st_mx_free(connected_, mx), 0);
  EXPECT_EQ(st_mx_free(connected_, mx), -ERANGE);
  EXPECT_EQ(st_mx_free(connected_, mx_), 0) << "the one of st_map";
}

TEST_P(Memory, UnmappingFreesTheMxOfTheMemory) {
  ASSERT_EQ(map(ST_MAP_RX, buffer_.data(), kBufsize, 0, -1), 0);
  ASSERT_EQ(st_unmap(region_), 0);
  EXPECT_EQ(st_unmap(region_), -EBADF);
  EXPECT_EQ(st_mx_free(connected_, mx_), -ERANGE);
  ASSERT_EQ(map(ST_MAP_RX, buffer_.data(), kBufsize, 0, -1), 0);
}

TEST_P(Memory, MappingAndUnmappingManyTimesLeavesTheBytesAlone) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(map(i % 2 == 0 ? ST_MAP_TX : ST_MAP_RX, buffer_.data(), buffer_.length(), 0, -1), 0);
    ASSERT_EQ(st_unmap(region_), 0);
  }
  const Buffer fresh(buffer_.size());
  EXPECT_EQ(std::memcmp(buffer_.data(), fresh.data(), fresh.size()), 0);
}

}  // namespace
}  // namespace stp::test
