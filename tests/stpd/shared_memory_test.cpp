// SPDX-License-Identifier: BSD-3-Clause
// Memory from another process is taken only if it can never fault, or is guarded.
#include "libst/ipc/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "libst/host/budgets.h"
#include "libst/os/file_limit.h"
#include "libst/os/mapping_turn.h"
#include "tests/stpd/raw_client.h"
#include "tools/stpd/region_memory.h"

namespace stp::stpd {
namespace {

os::UniqueFd memory_of(std::size_t size, int seals) {
  os::UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::vector<std::byte> zeros(size);
  EXPECT_EQ(::pwrite(fd.get(), zeros.data(), size, 0), static_cast<ssize_t>(size));
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(SharedMemory, IsZeroedSealedAndSeenByBothSides) {
  const auto ours = ipc::SharedMemory::lend("test", 3 * ipc::page_size());
  ASSERT_NE(ours, nullptr);
  EXPECT_TRUE(std::all_of(ours->data(), ours->data() + ours->size(),
                          [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_NE(::ftruncate(ours->fd(), 0), 0);
  EXPECT_NE(::ftruncate(ours->fd(), 1 << 20), 0);
  const auto theirs = ipc::SharedMemory::adopt(::dup(ours->fd()), 0, ours->size());
  ASSERT_NE(theirs, nullptr);
  theirs->data()[ipc::page_size()] = std::byte{42};
  EXPECT_EQ(ours->data()[ipc::page_size()], std::byte{42});
}

TEST(SharedMemory, StaysWhenItsDescriptorIsForgotten) {
  const auto memory = ipc::SharedMemory::lend("test", ipc::page_size());
  ASSERT_NE(memory, nullptr);
  memory->forget_fd();
  EXPECT_EQ(memory->fd(), -1);
  memory->data()[0] = std::byte{1};
}

// Both sides go on; whoever else comes reads at most.
TEST(SharedMemory, ThatIsOfferedKeepsItsPagesOnceTheOtherSideHasMappedIt) {
  if (!ipc::SharedMemory::can_keep_pages()) GTEST_SKIP() << "the kernel cannot keep pages";
  const auto ours = ipc::SharedMemory::offer("test", 3 * ipc::page_size());
  ASSERT_NE(ours, nullptr);
  const auto theirs = ipc::SharedMemory::adopt(::dup(ours->fd()), 0, ours->size());
  ASSERT_NE(theirs, nullptr);
  constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const auto page = static_cast<off_t>(ipc::page_size());
  theirs->data()[0] = std::byte{1};
  EXPECT_EQ(::fallocate(theirs->fd(), kPunch, 0, page), 0);
  theirs->data()[0] = std::byte{0};
  ASSERT_EQ(ours->keep_pages(), 0);
  struct stat status {};
  ASSERT_EQ(::fstat(ours->fd(), &status), 0);
  EXPECT_EQ(static_cast<std::size_t>(status.st_blocks) * 512, ours->size());
  EXPECT_EQ(::fallocate(theirs->fd(), kPunch, 0, page), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::madvise(theirs->data(), ipc::page_size(), MADV_REMOVE), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ipc::SharedMemory::adopt(::dup(ours->fd()), 0, ours->size()), nullptr);
  theirs->data()[ipc::page_size()] = std::byte{42};
  EXPECT_EQ(ours->data()[ipc::page_size()], std::byte{42});
  EXPECT_EQ(ours->data()[0], std::byte{0});
}

// While much is unmapped at once, nobody else in this process can map anything.
TEST(SharedMemory, IsUnmappedInParts) {
  constexpr std::size_t kSize = 4 * os::kUnmappedAtOnce;
  for (const bool offered : {true, false}) {
    const os::UniqueFd watcher(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
    uffdio_api wanted{};
    wanted.api = UFFD_API;
    wanted.features = UFFD_FEATURE_EVENT_UNMAP;
    if (!watcher || ::ioctl(watcher.get(), UFFDIO_API, &wanted) != 0)
      GTEST_SKIP() << "the kernel tells nothing of unmapping";
    auto memory =
        offered ? ipc::SharedMemory::offer("test", kSize) : ipc::SharedMemory::create_own(kSize);
    ASSERT_NE(memory, nullptr);
    uffdio_register range{};
    range.range = {.start = reinterpret_cast<std::uintptr_t>(memory->data()), .len = kSize};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(::ioctl(watcher.get(), UFFDIO_REGISTER, &range), 0);
    std::thread end([&memory] { memory.reset(); });
    for (std::size_t all = 0; all < kSize;) {
      uffd_msg told{};
      if (::read(watcher.get(), &told, sizeof told) != static_cast<ssize_t>(sizeof told)) continue;
      EXPECT_EQ(told.event, UFFD_EVENT_UNMAP);
      EXPECT_LE(told.arg.remove.end - told.arg.remove.start, os::kUnmappedAtOnce);
      all += told.arg.remove.end - told.arg.remove.start;
    }
    end.join();
  }
}

TEST(SharedMemory, ThatTheOtherSideHasSealedFirstIsKeptOnlyIfNoPageCanGo) {
  if (!ipc::SharedMemory::can_keep_pages()) GTEST_SKIP() << "the kernel cannot keep pages";
  const auto open = ipc::SharedMemory::offer("test", ipc::page_size());
  ASSERT_EQ(::fcntl(open->fd(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_EQ(open->keep_pages(), -EPERM);
  const auto closed = ipc::SharedMemory::offer("test", ipc::page_size());
  ASSERT_EQ(::fcntl(closed->fd(), F_ADD_SEALS, ipc::kSealFutureWrite | F_SEAL_SEAL), 0);
  EXPECT_EQ(closed->keep_pages(), -EFAULT) << "it has no page";
  closed->data()[0] = std::byte{1};
  EXPECT_EQ(closed->keep_pages(), 0);
}

// It can keep them for longer than the side that offers them, so it pays for them.
TEST(SharedMemory, ThatIsOfferedHasItsPagesFromTheOtherSide) {
  const auto ours = ipc::SharedMemory::offer("test", 3 * ipc::page_size());
  ASSERT_NE(ours, nullptr);
  EXPECT_EQ(ours->keep_pages(), -EFAULT);
  EXPECT_EQ(bytes_made(ours->fd()), 0);
  const auto others = ipc::SharedMemory::offer("test", 3 * ipc::page_size());
  const auto theirs = ipc::SharedMemory::adopt(::dup(others->fd()), 0, others->size());
  ASSERT_NE(theirs, nullptr);
  EXPECT_EQ(bytes_made(others->fd()), static_cast<std::int64_t>(others->size()));
  EXPECT_EQ(others->keep_pages(), 0);
}

TEST(SharedMemory, ThatCouldShrinkIsRefused) {
  errno = 0;
  EXPECT_EQ(ipc::SharedMemory::adopt(memory_of(ipc::page_size(), 0).release(), 0, ipc::page_size()),
            nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ipc::SharedMemory::adopt(memory_of(ipc::page_size(), F_SEAL_GROW).release(), 0,
                                     ipc::page_size()),
            nullptr);
}

TEST(SharedMemory, ThatIsTooSmallIsRefused) {
  const auto adopt = [](std::size_t offset, std::size_t size) {
    return ipc::SharedMemory::adopt(memory_of(2 * ipc::page_size(), F_SEAL_SHRINK).release(),
                                    offset, size);
  };
  EXPECT_NE(adopt(0, 2 * ipc::page_size()), nullptr);
  EXPECT_NE(adopt(ipc::page_size(), ipc::page_size()), nullptr);
  EXPECT_EQ(adopt(0, 2 * ipc::page_size() + 1), nullptr);
  EXPECT_EQ(adopt(ipc::page_size(), 2 * ipc::page_size()), nullptr);
  EXPECT_EQ(adopt(2 * ipc::page_size(), ipc::page_size()), nullptr);
  EXPECT_EQ(adopt(ipc::page_size(), ~std::size_t{0} - ipc::page_size() + 1), nullptr);
  EXPECT_EQ(adopt(0, 0), nullptr);
  EXPECT_EQ(adopt(1, ipc::page_size()), nullptr);
}

TEST(SharedMemory, WhatIsNoMemoryAtAllIsRefused) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  EXPECT_EQ(ipc::SharedMemory::adopt(pipe[0], 0, ipc::page_size()), nullptr);
  ::close(pipe[1]);
  EXPECT_EQ(ipc::SharedMemory::adopt(::open("/", O_RDONLY | O_CLOEXEC), 0, ipc::page_size()),
            nullptr);
  EXPECT_EQ(ipc::SharedMemory::adopt(::open("/dev/zero", O_RDWR | O_CLOEXEC), 0, ipc::page_size()),
            nullptr);
  EXPECT_EQ(
      ipc::SharedMemory::adopt(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 0, ipc::page_size()),
      nullptr);
  EXPECT_EQ(ipc::SharedMemory::adopt(-1, 0, ipc::page_size()), nullptr);
}

class RegionMemoryTest : public testing::Test {
 protected:
  RegionMemoryTest() {
    request.direction = static_cast<std::uint32_t>(Direction::kReceive);
    fds.push_back(memory_of(4 * ipc::page_size(), F_SEAL_SHRINK));
    fds.push_back(memory_of(2 * ipc::page_size(), F_SEAL_SHRINK));
    // The last two pages of the first, then the first of the second, from 256 bytes in.
    request.segment_count = 2;
    request.segments[0] = {.fd_index = 0,
                           .reserved = 0,
                           .offset = 2 * ipc::page_size(),
                           .length = 2 * ipc::page_size()};
    request.segments[1] = {.fd_index = 1, .reserved = 0, .offset = 0, .length = ipc::page_size()};
    request.piece_count = 1;
    request.pieces[0] = {.at = 256, .length = 3 * ipc::page_size() - 512};
  }
  int map() {
    std::uint64_t bytes = 0;
    const auto error = RegionMemory::measure(request, fds.size(), host::Quotas{}.map_bytes, bytes);
    return error != 0
               ? error
               : RegionMemory::map(request, fds, host::Quotas{}.map_bytes, {}, nullptr, memory);
  }

  ask::Map request{};
  std::vector<os::UniqueFd> fds;
  std::shared_ptr<RegionMemory> memory;
};

TEST_F(RegionMemoryTest, SegmentsLieSideBySide) {
  ASSERT_EQ(map(), 0);
  ASSERT_EQ(memory->pieces()[0].size(), request.pieces[0].length);
  memory->pieces()[0][0] = std::byte{1};
  memory->pieces()[0][2 * ipc::page_size()] = std::byte{2};
  char seen = 0;
  ASSERT_EQ(::pread(fds[0].get(), &seen, 1, static_cast<off_t>(2 * ipc::page_size() + 256)), 1);
  EXPECT_EQ(seen, 1);
  ASSERT_EQ(::pread(fds[1].get(), &seen, 1, 256), 1);
  EXPECT_EQ(seen, 2);
}

TEST_F(RegionMemoryTest, MemoryToSendFromMayBeReadOnly) {
  fds[1] = memory_of(ipc::page_size(), F_SEAL_SHRINK | F_SEAL_WRITE);
  EXPECT_LT(map(), 0);
  EXPECT_EQ(memory, nullptr);
  request.direction = static_cast<std::uint32_t>(Direction::kTransmit);
  EXPECT_EQ(map(), 0);
}

TEST_F(RegionMemoryTest, SegmentsThatMakeNoSenseAreRefused) {
  const auto refused = [this](auto&& change) {
    const auto good = request;
    change(request);
    const auto result = map();
    request = good;
    return result == -EINVAL && memory == nullptr;
  };
  EXPECT_TRUE(refused([](ask::Map& r) { r.segment_count = 0; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segment_count = ipc::kMaxSegments + 1; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segments[1].fd_index = 2; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segments[1].length = 100; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segments[1].length = 0; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segments[1].offset = 100; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segments[1].offset = 2 * ipc::page_size(); }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.segments[1].offset = ~std::uint64_t{0} << 12; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.pieces[0].at = 3 * ipc::page_size(); }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.pieces[0].length = 0; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.pieces[0].length = 3 * ipc::page_size() - 255; }));
  EXPECT_TRUE(refused([](ask::Map& r) { r.pieces[0].length = ~std::uint64_t{0}; }));
  EXPECT_EQ(map(), 0);
}

TEST_F(RegionMemoryTest, MoreThanTheLimitIsRefused) {
  request.segments[0].length = host::Quotas{}.map_bytes + ipc::page_size();
  EXPECT_EQ(map(), -EDQUOT);
  request.segments[0].length = ~std::uint64_t{0} << 12;
  EXPECT_EQ(map(), -EDQUOT);
}

TEST_F(RegionMemoryTest, OneBadDescriptorAmongGoodOnesIsRefused) {
  fds[1] = memory_of(ipc::page_size(), 0);
  EXPECT_EQ(map(), -EINVAL);
  fds[1].reset(::open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(map(), -EINVAL);
  EXPECT_EQ(memory, nullptr);
}

}  // namespace
}  // namespace stp::stpd

namespace stp::ipc {
namespace {

constexpr std::size_t kPage = 4'096;

// Nobody touches this memory.
MutableBytes page(std::uintptr_t number, std::size_t pages = 1) {
  return {reinterpret_cast<std::byte*>(number * kPage), pages * kPage};
}

class GuardedRangesTest : public testing::Test {
 protected:
  Torn* owner_at(std::uintptr_t address) const {
    GuardedRanges::Range range;
    return ranges.find(address, range) ? range.torn : nullptr;
  }

  GuardedRanges ranges{64};
  Torn one{false}, other{false};
};

TEST_F(GuardedRangesTest, FindsTheRangeOfAnAddressAndItsOwner) {
  ASSERT_EQ(ranges.add(page(10, 2), &one), 0);
  ASSERT_EQ(ranges.add(page(12), &other), 0);
  EXPECT_EQ(owner_at(10 * kPage - 1), nullptr);
  EXPECT_EQ(owner_at(10 * kPage), &one);
  EXPECT_EQ(owner_at(12 * kPage - 1), &one);
  EXPECT_EQ(owner_at(12 * kPage), &other);
  EXPECT_EQ(owner_at(13 * kPage), nullptr);
  EXPECT_EQ(owner_at(0), nullptr);
  GuardedRanges::Range range;
  ASSERT_TRUE(ranges.find(11 * kPage + 5, range));
  EXPECT_EQ(range.begin, 10 * kPage);
  EXPECT_EQ(range.end, 12 * kPage);
}

TEST_F(GuardedRangesTest, ForgetsWhatIsRemovedAndNothingElse) {
  std::vector<std::uintptr_t> numbers;
  for (std::uintptr_t i = 1; i <= 50; ++i) numbers.push_back(2 * i);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(7));
  for (const auto number : numbers) ASSERT_EQ(ranges.add(page(number), &one), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(8));
  while (!numbers.empty()) {
    ranges.remove(page(numbers.back()));
    EXPECT_EQ(owner_at(numbers.back() * kPage), nullptr);
    numbers.pop_back();
    for (const auto number : numbers) ASSERT_EQ(owner_at(number * kPage), &one) << number;
  }
  ranges.remove(page(2));  // no harm
}

TEST_F(GuardedRangesTest, AFullTableRefusesOneMore) {
  for (std::uintptr_t i = 1; i <= ranges.most(); ++i) ASSERT_EQ(ranges.add(page(i), &one), 0);
  EXPECT_EQ(ranges.add(page(1'000), &one), -ENOMEM);
  ranges.remove(page(1));
  EXPECT_EQ(ranges.add(page(1'000), &one), 0);
}

// As the signal handler does.
TEST_F(GuardedRangesTest, IsReadWhileAnotherThreadChangesIt) {
  ASSERT_EQ(ranges.add(page(100), &one), 0);
  std::atomic<bool> changing{true};
  std::thread changer([&] {
    for (int round = 0; round < 2'000; ++round) {
      for (const std::uintptr_t at : {50, 150, 120}) ranges.add(page(at), &other);
      for (const std::uintptr_t at : {150, 50, 120}) ranges.remove(page(at));
    }
    changing = false;
  });
  while (changing) ASSERT_EQ(owner_at(100 * kPage), &one);
  changer.join();
}

// Each region of stpd is an entry, and takes a mapping, of which an operator may permit more.
TEST(MemoryGuardTable, HasRoomForAsManyRegionsAsTheKernelPermitsMappings) {
  EXPECT_GE(MemoryGuard::room(1'048'576), 1'048'576U);
  EXPECT_GE(MemoryGuard::room(65'530), std::size_t{1} << 17);
  EXPECT_LE(MemoryGuard::room(~std::uint64_t{0}), std::size_t{1} << 24);
  EXPECT_GE(MemoryGuard::room(os::most_mappings()), os::most_mappings());
  GuardedRanges many(MemoryGuard::room(1'048'576));
  Torn torn{false};
  constexpr std::uintptr_t kRegions = 200'000;  // the kernel's addresses come down
  for (auto i = kRegions; i > 0; --i) ASSERT_EQ(many.add(page(i), &torn), 0) << i;
  GuardedRanges::Range range;
  EXPECT_TRUE(many.find(kRegions * kPage, range));
  EXPECT_TRUE(many.find(1 * kPage, range));
}

}  // namespace
}  // namespace stp::ipc
