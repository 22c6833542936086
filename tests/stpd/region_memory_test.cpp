// SPDX-License-Identifier: BSD-3-Clause
// Memory that programs lend: the daemon makes none of its pages, and survives what they do to it.
#include "tools/stpd/region_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "tests/stpd/raw_client.h"

namespace stp::stpd {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 32;  // bytes in one request

// Memory of a program's own, as it would send it.
class Lent {
 public:
  explicit Lent(std::size_t size, bool made = true) : size_(size) {
    fds_[0].reset(::memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd(), static_cast<off_t>(size)), 0);
    EXPECT_EQ(::fcntl(fd(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    if (made) make_pages(fd(), size);
  }
  [[nodiscard]] int fd() const { return fds_[0].get(); }
  [[nodiscard]] int punch(std::size_t at, std::size_t length) const {
    return ::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                       static_cast<off_t>(length));
  }
  [[nodiscard]] ask::Map request(Direction direction) const {
    ask::Map request{};
    request.direction = static_cast<std::uint32_t>(direction);
    request.segment_count = request.piece_count = 1;
    request.segments[0] = {.fd_index = 0, .reserved = 0, .offset = 0, .length = size_};
    request.pieces[0] = {.at = 0, .length = size_};
    return request;
  }
  int map(Direction direction) {
    return RegionMemory::map(request(direction), fds_, kMost, {}, torn, memory);
  }

  std::shared_ptr<ipc::Torn> torn = std::make_shared<ipc::Torn>(false);
  std::shared_ptr<RegionMemory> memory;

 private:
  const std::size_t size_;
  std::array<os::UniqueFd, 1> fds_;
};

constexpr std::size_t kSize = std::size_t{1} << 16;

// Looks at a file that is worked on as often as `worked` says, and then no more.
class Looks {
 public:
  explicit Looks(std::vector<bool> worked) : worked_(std::move(worked)) {}
  bool operator()() { return count_ < worked_.size() ? worked_[count_++] : (++count_, false); }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::vector<bool> worked_;
  std::size_t count_ = 0;
};

TEST(FilesThatAreWorkedOn, AreQuietIfTheFirstLookOrThreeInARowFindNobody) {
  Looks at_once({}), after_a_step({true}), after_more({true, false, false, true, false});
  EXPECT_TRUE(becomes_quiet(std::ref(at_once)));
  EXPECT_EQ(at_once.count(), 1U);
  EXPECT_TRUE(becomes_quiet(std::ref(after_a_step)));
  EXPECT_EQ(after_a_step.count(), 4U);
  EXPECT_TRUE(becomes_quiet(std::ref(after_more)));
  EXPECT_EQ(after_more.count(), 7U);
}

TEST(FilesThatAreWorkedOn, AreNotWaitedForWithoutEnd) {
  Looks without_pause(std::vector<bool>(100, true));
  EXPECT_FALSE(becomes_quiet(std::ref(without_pause)));
  EXPECT_LE(without_pause.count(), 13U);
}

class LentMemory : public testing::TestWithParam<Direction> {
 protected:
  void SetUp() override {
    if (!ipc::SharedMemory::can_keep_pages()) GTEST_SKIP() << "the kernel cannot keep pages";
  }
};

TEST_P(LentMemory, IsThereWhereItsOwnerHasMadeIt) {
  Lent lent(kSize);
  ASSERT_EQ(lent.map(GetParam()), 0);
  EXPECT_EQ(lent.memory->populate(kSize / 2), -EAGAIN);
  EXPECT_EQ(lent.memory->populate(kSize / 2), 0);
  EXPECT_FALSE(*lent.torn);
}

TEST_P(LentMemory, WithAHoleIsRefusedAndNoPageIsMade) {
  Lent lent(kSize);
  ASSERT_EQ(lent.punch(2 * ipc::page_size(), ipc::page_size()), 0);
  const auto before = bytes_made(lent.fd());
  EXPECT_EQ(lent.map(GetParam()), -EFAULT);
  EXPECT_EQ(bytes_made(lent.fd()), before);
  Lent empty(kSize, false);
  EXPECT_EQ(empty.map(GetParam()), -EFAULT);
  EXPECT_EQ(bytes_made(empty.fd()), 0);
}

TEST_P(LentMemory, LosesNoPageOnceItIsMapped) {
  Lent lent(kSize);
  auto* const own = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, lent.fd(), 0);
  ASSERT_NE(own, MAP_FAILED);
  ASSERT_EQ(lent.map(GetParam()), 0);
  EXPECT_EQ(lent.punch(0, ipc::page_size()), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::madvise(own, kSize, MADV_REMOVE), -1);
  EXPECT_EQ(errno, EPERM);
  *static_cast<char*>(own) = 42;
  EXPECT_EQ(lent.memory->pieces()[0][0], std::byte{42});
  ::munmap(own, kSize);
}

// What seals it keeps it from being mapped for writing: the daemon keeps a mapping of the whole.
TEST_P(LentMemory, CanBeMappedOnceMoreWhileARegionUsesIt) {
  Lent lent(kSize);
  ASSERT_EQ(lent.map(GetParam()), 0);
  auto first = std::move(lent.memory);
  ASSERT_EQ(lent.map(Direction::kReceive), 0);
  lent.memory->pieces()[0][ipc::page_size()] = std::byte{7};
  EXPECT_EQ(first->pieces()[0][ipc::page_size()], std::byte{7});
  first.reset();
  ASSERT_EQ(lent.map(Direction::kReceive), 0);
  lent.memory.reset();
  EXPECT_EQ(lent.map(Direction::kReceive), -EPERM) << "nothing of it was mapped any more";
  EXPECT_EQ(lent.map(Direction::kTransmit), 0);
}

TEST_P(LentMemory, ThatCanNeverBeSealedIsRefused) {
  Lent lent(kSize);
  ASSERT_EQ(::fcntl(lent.fd(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_EQ(lent.map(GetParam()), -EINVAL);
}

INSTANTIATE_TEST_SUITE_P(BothWays, LentMemory,
                         testing::Values(Direction::kTransmit, Direction::kReceive));

// As on a kernel without the seal: the guard is all that there is.
class Watched {
 public:
  explicit Watched(std::size_t size) : lent(size) {
    auto* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, lent.fd(), 0);
    EXPECT_NE(at, MAP_FAILED);
    mapped = {static_cast<std::byte*>(at), size};
    EXPECT_EQ(ipc::MemoryGuard::instance().watch(mapped), 0);
    guard(lent.torn);
  }
  ~Watched() {
    guarded_.reset();
    ::munmap(mapped.data(), mapped.size());
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void guard(std::shared_ptr<ipc::Torn> torn) {
    guarded_.reset();
    EXPECT_EQ(guarded_.begin(mapped, std::move(torn)), 0);
  }

  Lent lent;
  MutableBytes mapped;

 private:
  ipc::Guarded guarded_;
};

TEST(WatchedMemory, WhoTouchesAPageThatWasTakenAwayFindsZerosAndItsOwnerIsTold) {
  if (!ipc::MemoryGuard::instance().watches()) GTEST_SKIP() << "the system permits no userfaultfd";
  const Watched watched(kSize), other(kSize);
  ASSERT_EQ(watched.lent.punch(0, kSize), 0);
  const auto tears = ipc::MemoryGuard::tears();
  const auto* const bytes = reinterpret_cast<volatile char*>(watched.mapped.data());
  for (const auto at : {3 * ipc::page_size() + 5, 3 * ipc::page_size() + 6}) {
    const auto found = static_cast<int>(bytes[at]);
    EXPECT_EQ(found, 0);
  }
  EXPECT_EQ(ipc::MemoryGuard::tears(), tears + 1);
  EXPECT_TRUE(*watched.lent.torn);
  EXPECT_FALSE(*other.lent.torn);
  EXPECT_EQ(bytes_made(watched.lent.fd()), 0);
}

TEST(WatchedMemory, EachOfManyRangesIsFoundAndForgotten) {
  if (!ipc::MemoryGuard::instance().watches()) GTEST_SKIP() << "the system permits no userfaultfd";
  std::vector<std::unique_ptr<Watched>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(std::make_unique<Watched>(ipc::page_size()));
    if (i % 3 == 2) all.erase(all.begin() + i / 3);
  }
  for (const auto& watched : all) {
    ASSERT_EQ(watched->lent.punch(0, ipc::page_size()), 0);
    *reinterpret_cast<volatile char*>(watched->mapped.data()) = 1;
    EXPECT_TRUE(*watched->lent.torn);
  }
}

TEST(LentMemoryKinds, HugePagesAreRefused) {
  os::UniqueFd huge(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!huge) GTEST_SKIP() << "this kernel has no huge pages";
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  // Without a page reserved: touching it would be a SIGBUS.
  ASSERT_EQ(::ftruncate(huge.get(), kHuge), 0);
  ASSERT_EQ(::fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(ipc::check_shareable(huge.get(), 0, kHuge), -EINVAL);
}

TEST(LentMemoryKinds, WhatIsSealedAgainstWritingIsLookedThroughOnce) {
  constexpr auto kTransmit = Direction::kTransmit;
  Lent whole(kSize), torn(kSize);
  ASSERT_EQ(torn.punch(ipc::page_size(), ipc::page_size()), 0);
  for (auto* lent : {&whole, &torn}) ASSERT_EQ(::fcntl(lent->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(whole.map(kTransmit), 0);
  EXPECT_EQ(torn.map(kTransmit), -EFAULT);
}

// A look for missing pages may go through the file to its end, so its length is limited.
TEST(LentMemoryKinds, ALongSealedFileIsMappedIfTheOperatorPermitsSoMuch) {
  constexpr std::uint64_t kLong = std::uint64_t{17} << 30;
  const std::array<os::UniqueFd, 1> file{
      os::UniqueFd(::memfd_create("long", MFD_CLOEXEC | MFD_ALLOW_SEALING))};
  const auto fd = file[0].get();
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(kLong)), 0);
  make_pages(fd, kSize);
  ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
  const auto request = Lent(kSize, false).request(Direction::kTransmit);
  std::shared_ptr<RegionMemory> memory;
  const auto map = [&](std::uint64_t most) {
    return RegionMemory::map(request, file, most, {}, nullptr, memory);
  };
  EXPECT_EQ(map(kMost), -EINVAL);
  EXPECT_EQ(map(kLong), 0);
}

TEST(LentMemoryKinds, WhatOnlyItsOwnerMayWriteIsRefused) {
  Lent lent(kSize);
  const auto path = "/proc/self/fd/" + std::to_string(lent.fd());
  const std::array<os::UniqueFd, 1> read_only{
      os::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  std::shared_ptr<RegionMemory> memory;
  EXPECT_EQ(RegionMemory::map(lent.request(Direction::kTransmit), read_only, kMost, {}, lent.torn,
                              memory),
            -EINVAL);
}

// Somebody else has it for reading only, and the daemon has mapped it for writing already.
TEST(LentMemoryKinds, WhoMayOnlyReadItCannotHaveItWritten) {
  const Lent lent(kSize);
  const std::array<os::UniqueFd, 1> own{os::UniqueFd(::fcntl(lent.fd(), F_DUPFD_CLOEXEC, 0))};
  const auto path = "/proc/self/fd/" + std::to_string(lent.fd());
  const std::array<os::UniqueFd, 1> read_only{
      os::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  std::shared_ptr<RegionMemory> memory, of_the_other;
  const auto map = [&](Direction direction, const auto& files, auto& out) {
    return RegionMemory::map(lent.request(direction), files, kMost, {}, lent.torn, out);
  };
  ASSERT_EQ(map(Direction::kReceive, own, memory), 0);
  EXPECT_EQ(map(Direction::kReceive, read_only, of_the_other), -EINVAL);
  EXPECT_EQ(map(Direction::kTransmit, read_only, of_the_other), 0);
}

// Through a service: who takes memory away that is being sent is ended, and nobody else.
class TornMemory : public host::ServiceFixture {
 protected:
  void map_watched(Watched& watched) {
    auto request = watched.lent.request(Direction::kTransmit);
    request.endpoint = alice_endpoint;
    host::RegionClaim claim;
    ipc::ReplyMessage refusal;
    ASSERT_EQ(service.drive()->claim_region(alice, request, kSize, 1, claim, refusal), 0);
    watched.guard(claim.torn);
    attachments.pieces = {watched.mapped};
    attachments.of_region = std::move(claim.of_region);
    attachments.mapped_bytes = kSize;
    ASSERT_EQ(ask(alice, ipc::RequestMessage(request)), 0);
  }
  std::uint16_t grant_to_alice() {
    EXPECT_EQ(map(bob, bob_endpoint, Direction::kReceive, destination), 0);
    EXPECT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, reply.region), 0);
    SendEntry grant{};
    grant.header.op_flags = wire::op_flags(wire::Op::kClearToSend);
    grant.header.param = 14;
    grant.header.mx = static_cast<std::uint16_t>(reply.mx);
    grant.header.d_id = 1;
    grant.header.s_id = 7;
    EXPECT_TRUE(bob_end.channel.send(grant));
    page_of(bob).bells.ring(bob_end.bell);
    turn();
    return grant.header.mx;
  }
  void send_to_bob(std::uint16_t mx) {
    SendEntry data{};
    data.header.op_flags = wire::op_flags(wire::Op::kData);
    data.header.mx = mx;
    data.header.d_id = 7;
    data.length = kBuffer;
    EXPECT_TRUE(alice_end.channel.send(data));
    page_of(alice).bells.ring(alice_end.bell);
    turn();
  }
};

TEST_F(TornMemory, EndsWhoTookItAwayAndNobodyElse) {
  if (!ipc::MemoryGuard::instance().watches()) GTEST_SKIP() << "the system permits no userfaultfd";
  connect();
  Watched watched(kSize);
  map_watched(watched);
  const auto mx = grant_to_alice();
  EXPECT_FALSE(service.drive()->next_expelled());
  ASSERT_EQ(watched.lent.punch(0, kSize), 0);
  send_to_bob(mx);
  const auto expelled = service.drive()->next_expelled();
  ASSERT_TRUE(expelled);
  EXPECT_EQ(*expelled, alice);
  EXPECT_FALSE(service.drive()->next_expelled());
  EXPECT_EQ(bytes_made(watched.lent.fd()), 0);
  EXPECT_EQ(ask(alice, ipc::RequestKind::kHello), -EBADF);
  service.drive()->remove_client(alice);  // as the server does then
  turn(20);
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(service.drive()->client_count(), 1U);
}

}  // namespace
}  // namespace stp::stpd
