// SPDX-License-Identifier: BSD-3-Clause
// Memory shared with a daemon: wherever a program's memory comes from, it keeps its content and its
// address, and data from the peer arrives in it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/libst/libst_fixture.h"

namespace stp::test::shared_pages_test {
namespace {

constexpr std::size_t kBufsize = 4'096;

class SharedPages : public ConnectedTest {
 protected:
  void configure() override {
    set_option(client_, ST_OPT_BUFSIZE_LOCAL, bufsize_);
    set_option(server_, ST_OPT_BUFSIZE_LOCAL, bufsize_);
  }
  int map(st_ehandle_t endpoint, int flags, void* ptr, std::size_t size, int base) {
    return st_map(endpoint, flags, ptr, static_cast<int>(size), base, -1, &region_, &mx_);
  }
  // Sends `size` bytes from the client's Bufx `from` to the server's Bufx `to`.
  void transfer(int from, std::uint32_t to, std::size_t size) {
    auto cts = header(ST_OP_CTS);
    cts.blocksize = 16;
    cts.r_mx = static_cast<std::uint16_t>(mx_);
    cts.r_bufx = to;
    cts.d_id = id_;
    cts.s_id = id_++;
    ASSERT_EQ(send(accepted_, cts), 0) << st_strerror(-ERANGE);
    st_header_t got;
    ASSERT_EQ(receive(connected_, got), 0);
    auto data = header(ST_OP_DATA);
    data.r_mx = got.r_mx;
    data.r_bufx = got.r_bufx;
    data.d_id = got.s_id;
    ASSERT_EQ(st_tx(connected_, &data, nullptr, static_cast<int>(size), from, 0), 0);
    ASSERT_EQ(receive(accepted_, got), 0);
    ASSERT_EQ(ST_OP(got.op_flags), unsigned{ST_OP_DATA});
  }

  unsigned bufsize_ = 12;
  st_mhandle_t region_ = nullptr;
  int mx_ = -1;
  std::uint32_t id_ = 1;
};
STP_BOTH_WAYS(SharedPages);

TEST_P(SharedPages, OverlappingMapsShowTheSameMemory) {
  Buffer source(16 * kBufsize, 1), target(16 * kBufsize, 0, false);
  ASSERT_EQ(map(client_, ST_MAP_TX, source.data(), 8 * kBufsize, 0), 0);
  ASSERT_EQ(map(client_, ST_MAP_TX, source.data() + 4 * kBufsize, 12 * kBufsize, 100), 0);
  ASSERT_EQ(map(client_, ST_MAP_RX, source.data(), 16 * kBufsize, 0), 0);
  ASSERT_EQ(map(server_, ST_MAP_RX, target.data(), target.size(), 0), 0);
  source[5 * kBufsize] = 0x5a;  // seen through either map
  transfer(0, 0, 8 * kBufsize);
  EXPECT_EQ(std::memcmp(target.data(), source.data(), 8 * kBufsize), 0);
  transfer(100, 0, 12 * kBufsize);
  EXPECT_EQ(std::memcmp(target.data(), source.data() + 4 * kBufsize, 12 * kBufsize), 0);
}

// stpd allocates no page of a program's memory. If one is missing, it refuses the memory.
TEST_P(SharedPages, PagesThatNobodyHasTouchedAreMadeByTheProgram) {
  constexpr std::size_t kSize = std::size_t{4} << 20;
  void* memory = nullptr;
  ASSERT_EQ(st_malloc(server_, kSize, -1, &memory), 0);
  std::vector<unsigned char> present(kSize / 4'096);
  EXPECT_EQ(map(server_, ST_MAP_RX, memory, kSize, 0), 0) << st_strerror(-EFAULT);
  if (GetParam() == Way::kThroughDaemon) {
    ASSERT_EQ(::mincore(memory, kSize, present.data()), 0);
    EXPECT_EQ(std::count_if(present.begin(), present.end(), [](auto p) { return (p & 1) == 0; }),
              0);
  }
  EXPECT_EQ(st_unmap(region_), 0);
  EXPECT_EQ(st_free(memory), 0);
}

TEST_P(SharedPages, MemoryMappedForReceivingCanBeMappedForSendingOn) {
  Buffer source(4 * kBufsize, 9), relay(4 * kBufsize, 0, false);
  ASSERT_EQ(map(client_, ST_MAP_TX, source.data(), source.size(), 0), 0);
  ASSERT_EQ(map(server_, ST_MAP_TX, relay.data(), relay.size(), 0), 0);
  ASSERT_EQ(map(server_, ST_MAP_RX, relay.data(), relay.size(), 0), 0);
  transfer(0, 0, source.size());
  EXPECT_EQ(std::memcmp(relay.data(), source.data(), source.size()), 0);
}

TEST_P(SharedPages, AddressesThatWereUnmappedAndUsedAgainAreSeenAsNew) {
  constexpr std::size_t kSize = 4 * kBufsize;
  Buffer target(kSize, 0, false);
  ASSERT_EQ(map(server_, ST_MAP_RX, target.data(), kSize, 0), 0);
  auto* const at =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  const auto mx = mx_;
  for (int round = 1; round <= 3; ++round) {
    std::memset(at, round, kSize);
    ASSERT_EQ(map(client_, ST_MAP_TX, at, kSize, round * 10), 0);
    mx_ = mx;
    transfer(round * 10, 0, kSize);
    EXPECT_EQ(target[0], round);
    EXPECT_EQ(target[kSize - 1], round);
    // The program takes the pages away behind libst's back and puts others in their place.
    ASSERT_EQ(
        ::mmap(at, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        at);
  }
  client_.reset();
  ::munmap(at, kSize);
}

TEST_P(SharedPages, PiecesOfDifferentOriginMakeOneRegion) {
  // Read-only pages between writable ones: several areas, one region.
  constexpr std::size_t kSize = 6 * kBufsize;
  auto* const at = static_cast<unsigned char*>(
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t i = 0; i < kSize; ++i) at[i] = static_cast<unsigned char>(i * 31 + (i >> 8));
  ASSERT_EQ(::mprotect(at + 2 * kBufsize, kBufsize, PROT_READ), 0);
  Buffer target(kSize, 0, false);
  ASSERT_EQ(map(client_, ST_MAP_TX, at, kSize, 0), 0);
  ASSERT_EQ(map(server_, ST_MAP_RX, target.data(), kSize, 0), 0);
  transfer(0, 0, kSize);
  EXPECT_EQ(std::memcmp(target.data(), at, kSize), 0);
  client_.reset();
  ::munmap(at, kSize);
}

TEST_P(SharedPages, ManySmallRegionsLeaveNothingThatALargeOneMindsLater) {
  constexpr int kPieces = 40;
  Buffer source(kPieces * kBufsize, 3), target(kPieces * kBufsize, 0, false);
  std::vector<st_mhandle_t> regions;
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_EQ(map(client_, ST_MAP_TX, source.data() + i * kBufsize, kBufsize, i), 0);
    regions.push_back(region_);
  }
  for (const auto region : regions) ASSERT_EQ(st_unmap(region), 0);
  ASSERT_EQ(map(client_, ST_MAP_TX, source.data(), source.size(), 0), 0)
      << st_strerror(-EOPNOTSUPP);
  ASSERT_EQ(map(server_, ST_MAP_RX, target.data(), target.size(), 0), 0);
  transfer(0, 0, 8 * kBufsize);
  EXPECT_EQ(std::memcmp(source.data(), target.data(), 8 * kBufsize), 0);
}

TEST_P(SharedPages, ConstantsOfTheProgramCanBeSent) {
  alignas(4'096) static const unsigned char constants[4'096] = {1, 2, 3, 4};
  Buffer target(kBufsize, 0, false);
  ASSERT_EQ(map(client_, ST_MAP_TX, const_cast<unsigned char*>(constants), sizeof constants, 0), 0);
  ASSERT_EQ(map(server_, ST_MAP_RX, target.data(), kBufsize, 0), 0);
  transfer(0, 0, kBufsize);
  EXPECT_EQ(std::memcmp(target.data(), constants, kBufsize), 0);
}

TEST_P(SharedPages, AMappingThatOthersShareIsNotCutOffFromThem) {
  const auto fd = ::memfd_create("of-the-program", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kBufsize), 0);
  auto* const mine = static_cast<unsigned char*>(
      ::mmap(nullptr, kBufsize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  const auto lent = GetParam() == Way::kThroughDaemon;
  EXPECT_EQ(map(client_, ST_MAP_TX, mine, kBufsize, 0), lent ? -EOPNOTSUPP : 0);
  mine[0] = 77;
  unsigned char seen = 0;
  ASSERT_EQ(::pread(fd, &seen, 1, 0), 1);
  EXPECT_EQ(seen, 77);
  client_.reset();
  ::munmap(mine, kBufsize);
  ::close(fd);
}

TEST_P(SharedPages, AFileMappingThatEndsEarlyIsAFaultAndNoCrash) {
  if (GetParam() == Way::kInProcess) {
    GTEST_SKIP() << "memory is used where it is";
  }
  char name[] = "/tmp/libst-test-XXXXXX";
  const auto fd = ::mkstemp(name);
  ASSERT_EQ(::ftruncate(fd, kBufsize), 0);
  auto* const at = ::mmap(nullptr, 4 * kBufsize, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  EXPECT_EQ(map(client_, ST_MAP_TX, at, 4 * kBufsize, 0), -EFAULT);
  EXPECT_EQ(map(client_, ST_MAP_TX, at, kBufsize, 0), 0);
  client_.reset();
  ::munmap(at, 4 * kBufsize);
  ::close(fd);
  ::unlink(name);
}

class SmallBuffers : public SharedPages {
 protected:
  void configure() override {
    bufsize_ = 8;
    SharedPages::configure();
  }
};
STP_BOTH_WAYS(SmallBuffers);

TEST_P(SmallBuffers, BuffersSmallerThanAPageLeaveTheirNeighboursAlone) {
  Buffer source(8'192, 5), target(8'192, 0, false);
  ASSERT_EQ(map(client_, ST_MAP_TX, source.data() + 256, 512, 0), 0);
  ASSERT_EQ(map(server_, ST_MAP_RX, target.data() + 4'096 - 256, 512, 7), 0);
  transfer(0, 7, 512);
  EXPECT_EQ(std::memcmp(target.data() + 4'096 - 256, source.data() + 256, 512), 0);
  std::memset(target.data() + 4'096 - 256, 0, 512);
  for (std::size_t i = 0; i < target.size(); ++i) ASSERT_EQ(target[i], 0) << i;
  const Buffer fresh(8'192, 5);
  EXPECT_EQ(std::memcmp(source.data(), fresh.data(), fresh.size()), 0);
}

}  // namespace
}  // namespace stp::test::shared_pages_test
