// SPDX-License-Identifier: BSD-3-Clause
// Registrations that were released and are made again: they cost no request if the memory is the
// same, and never show what is mapped there no more.
#include "libst/managed/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "libst/managed/domain.h"
#include "libst/os/unique_fd.h"
#include "tests/libst/parts/few_files.h"
#include "tests/managed/judged_port.h"
#include "tests/managed/managed_fixture.h"

namespace stp::test::memory_cache_test {
namespace {

using managed::Domain;
using managed::Memory;
using managed::MemoryCache;

constexpr std::size_t kPage = 4096, kSize = 5 * kPage;
constexpr unsigned kRemote = STM_REMOTE_READ | STM_REMOTE_WRITE;

// Memory at an address of its own.
class Pages {
 public:
  explicit Pages(std::size_t size = kSize)
      : size_(size),
        data_(static_cast<std::byte*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() {
    if (here_) unmap();
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  void fill(int value) const { std::memset(data_, value, size_); }
  // Something else may stand here from now on: a thread of the same process may map it.
  void unmap() {
    ::munmap(data_, size_);
    here_ = false;
  }
  void move_to(const Pages& place) {
    ASSERT_EQ(::mremap(data_, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, place.data_),
              static_cast<void*>(place.data_));
    here_ = false;
  }
  // Others take the place of `length` bytes.
  void replace(std::size_t from, std::size_t length) const {
    ASSERT_EQ(::mmap(data_ + from, length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              data_ + from);
  }

 private:
  std::size_t size_;
  std::byte* data_;
  bool here_ = true;
};

int in_child(const std::function<bool()>& act) {
  const auto child = ::fork();
  if (child == 0) ::_exit(act() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class Cached : public ManagedApi {
 protected:
  void SetUp() override {
    if (!MemoryCache().on()) GTEST_SKIP() << "the kernel does not tell what is mapped where";
    establish();
  }
  [[nodiscard]] static bool lent() { return GetParam() == Way::kThroughDaemon; }
  static std::size_t kept(const Side& side) {
    return client::find<Domain>(side.domain)->released().size();
  }
  // The region at the link in which the memory receives.
  static RegionId region(stm_memory_t memory) {
    const auto found = client::find<Memory>(memory);
    return found->receive_region(found->domain()->first_endpoint());
  }
  stm_memory_t lend(unsigned access = STM_LOCAL_WRITE) {
    return client.memory(pages.data() + 100, kSize - 200, access);
  }
  RegionId lend_once() {
    const auto memory = lend();
    const auto id = region(memory);
    EXPECT_EQ(stm_memory_release(memory), 0);
    return id;
  }
  void expect_same_bytes(stm_memory_t memory, int value) {
    pages.fill(value);
    expect_same_bytes(memory, pages.data() + 100, kSize - 200, value);
  }
  // The server gets the bytes that the program sees, and the program those that the server sends.
  void expect_same_bytes(stm_memory_t memory, std::byte* data, std::size_t length, int value) {
    std::vector<std::byte> there(length);
    const auto sink = server.memory(there.data(), length);
    std::memset(data, value, length);
    ASSERT_EQ(stm_receive(server.connection, 5, sink, there.data(), length), 0);
    ASSERT_EQ(stm_send(client.connection, 6, 0, 0, memory, data, length), 0);
    ASSERT_EQ(server.completion(5).status, 0);
    ASSERT_EQ(client.completion(6).status, 0);
    EXPECT_EQ(std::memcmp(there.data(), data, length), 0);
    std::memset(there.data(), value + 1, length);
    ASSERT_EQ(stm_receive(client.connection, 7, memory, data, length), 0);
    ASSERT_EQ(stm_send(server.connection, 8, 0, 0, sink, there.data(), length), 0);
    ASSERT_EQ(client.completion(7).status, 0);
    ASSERT_EQ(server.completion(8).status, 0);
    EXPECT_EQ(std::memcmp(there.data(), data, length), 0);
    EXPECT_EQ(stm_memory_release(sink), 0);
  }
  // Registers it, releases it and registers it again after `change`: the bytes are the same each
  // time. Returns whether the second one is the first one again.
  bool is_taken_over(std::byte* data, std::size_t length, const std::function<void()>& change) {
    auto memory = client.memory(data, length);
    const auto before = region(memory);
    expect_same_bytes(memory, data, length, 80);
    EXPECT_EQ(stm_memory_release(memory), 0);
    change();
    memory = client.memory(data, length);
    const auto after = region(memory);
    expect_same_bytes(memory, data, length, 90);
    EXPECT_EQ(stm_memory_release(memory), 0);
    return after == before;
  }
  stm_remote_t open(stm_memory_t memory, stm_region_t& region) {
    stm_remote_t remote{};
    EXPECT_EQ(
        stm_region_open(memory, pages.data() + 100, 100, kRemote, nullptr, 0, &region, &remote), 0);
    return remote;
  }

  Pages pages;
};
STP_BOTH_WAYS(Cached);

TEST_P(Cached, TheSameMemoryIsBoundOnce) {
  const auto first = lend_once();
  EXPECT_EQ(kept(client), 1U);
  for (int round = 0; round < 3; ++round) {
    const auto memory = lend();
    EXPECT_EQ(kept(client), 0U);
    EXPECT_EQ(region(memory), first);
    expect_same_bytes(memory, 10 * round);
    EXPECT_EQ(stm_memory_release(memory), 0);
    EXPECT_EQ(stm_memory_release(memory), -EBADF);
  }
}

TEST_P(Cached, OtherBytesAndOtherRightsAreRegistrationsOfTheirOwn) {
  const auto first = lend_once();
  const auto reads = lend(STM_LOCAL_READ);
  EXPECT_EQ(region(reads), kNoneId);
  EXPECT_EQ(stm_receive(client.connection, 1, reads, pages.data() + 100, 10), -EACCES);
  const auto shorter = client.memory(pages.data() + 100, kSize - 300);
  EXPECT_NE(region(shorter), first);
  EXPECT_EQ(stm_receive(client.connection, 1, shorter, pages.data() + 100, kSize - 200), -EINVAL);
  EXPECT_EQ(kept(client), 1U);
  EXPECT_EQ(region(lend()), first);
}

TEST_P(Cached, MemoryThatIsUsedTwiceIsBoundTwice) {
  const auto one = lend(), two = lend();
  EXPECT_NE(region(one), region(two));
  EXPECT_EQ(stm_memory_release(one), 0);
  expect_same_bytes(two, 3);
  EXPECT_EQ(stm_memory_release(two), 0);
  expect_same_bytes(lend(), 4);
}

TEST_P(Cached, MemoryThatHasGoneIsAFault) {
  lend_once();
  pages.unmap();
  stm_memory_t none = nullptr;
  EXPECT_EQ(
      stm_memory_register(client.domain, pages.data() + 100, kSize - 200, STM_LOCAL_WRITE, &none),
      -EFAULT);
  EXPECT_EQ(kept(client), 0U);
}

TEST_P(Cached, MemoryThatMayNotBeWrittenAnyMoreIsAFault) {
  lend_once();
  ASSERT_EQ(::mprotect(pages.data() + 2 * kPage, kPage, PROT_READ), 0);
  stm_memory_t none = nullptr;
  EXPECT_EQ(
      stm_memory_register(client.domain, pages.data() + 100, kSize - 200, STM_LOCAL_WRITE, &none),
      -EFAULT);
  ASSERT_EQ(::mprotect(pages.data() + 2 * kPage, kPage, PROT_READ | PROT_WRITE), 0);
  expect_same_bytes(lend(), 7);
}

// They are the program's own at another address, too: a child gets a copy of them.
TEST_P(Cached, PagesThatWereMovedAreCopiedToAChild) {
  pages.fill(1);
  lend_once();
  const Pages place;
  pages.move_to(place);
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const auto child = ::fork();
  if (child == 0) {
    char byte = 0;
    unsigned char there[kSize / kPage] = {};
    if (::mincore(place.data(), kSize, there) != 0) ::_exit(2);
    if (::read(gate[0], &byte, 1) != 1) ::_exit(3);
    ::_exit(place.data()[kPage] == std::byte{1} ? 0 : 1);
  }
  place.fill(2);
  ASSERT_EQ(::write(gate[1], "", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(gate[0]);
  ::close(gate[1]);
}

// Threads that each register memory, release it and put other memory in its place, and forks.
TEST_P(Cached, ThreadsThatRegisterReleaseAndReplaceAtOnce) {
  constexpr int kThreads = 3, kRounds = 60;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const Pages own;
      for (int round = 0; round < kRounds; ++round) {
        stm_memory_t memory = nullptr;
        own.fill(round);
        failures += stm_memory_register(i == 0 ? server.domain : client.domain, own.data(), kSize,
                                        STM_LOCAL_WRITE, &memory) != 0;
        failures += own.data()[kSize - 1] != static_cast<std::byte>(round);
        failures += stm_memory_release(memory) != 0;
        if (round % 3 == 2) own.replace(2 * kPage, kPage);
      }
    });
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(in_child([] { return true; }), 0);
    expect_same_bytes(lend(), round);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

// All of it, or a page at the beginning, in the middle or at the end.
TEST_P(Cached, OtherMemoryAtTheSameAddressIsSeen) {
  constexpr std::size_t kReplaced[][2] = {
      {0, kSize}, {0, kPage}, {2 * kPage, kPage}, {kSize - kPage, kPage}};
  int value = 20;
  for (const auto& [from, length] : kReplaced) {
    const auto before = lend_once();
    pages.replace(from, length);
    const auto memory = lend();
    EXPECT_TRUE(!lent() || region(memory) != before) << from;
    expect_same_bytes(memory, value += 2);
    EXPECT_EQ(stm_memory_release(memory), 0);
  }
}

// The program moves its pages: what is at the old address now is not what was registered.
TEST_P(Cached, PagesThatWereMovedAndSwappedAreSeen) {
  lend_once();
  Pages other;
  {
    const auto memory = client.memory(other.data() + 100, kSize - 200);
    ASSERT_EQ(stm_memory_release(memory), 0);
  }
  other.move_to(pages);
  expect_same_bytes(lend(), 30);
  ASSERT_EQ(::madvise(pages.data(), kSize, MADV_DONTNEED), 0);
  expect_same_bytes(lend(), 32);
}

// The kernel may take such pages away until they are written again.
TEST_P(Cached, PagesThatAreGivenBackLazilyAreSeen) {
  is_taken_over(pages.data(), kSize, [&] {
    const auto given = ::madvise(pages.data(), kSize, MADV_FREE);
    EXPECT_TRUE(given == 0 || lent()) << "it is for private memory alone";
  });
}

// Memory of malloc() at the same address again: with the same pages, and with others.
TEST_P(Cached, MemoryThatIsFreedAndAllocatedAgainIsSeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc() gives an address again late";
#endif
  // So long that no free part of the heap can have it.
  constexpr std::size_t kMapped = std::size_t{4} << 20, kOfHeap = std::size_t{64} << 10;
  ASSERT_EQ(::mallopt(M_MMAP_THRESHOLD, 2 * kOfHeap), 1);
  for (const auto length : {kOfHeap, kMapped}) {
    auto* data = std::malloc(length);
    auto at = static_cast<std::byte*>(data);
    std::vector<void*> elsewhere;
    const auto same = is_taken_over(at, length, [&] {
      std::free(data);
      while ((data = std::malloc(length)) != at && elsewhere.size() < 100)
        elsewhere.push_back(data);
      ASSERT_EQ(data, at) << length;
    });
    if (!lent() || length == kOfHeap) {
      EXPECT_TRUE(same) << length;
    }
    std::free(data);
    for (auto* const each : elsewhere) std::free(each);
  }
}

TEST_P(Cached, PagesThatBecomeHugeAreSeen) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1
  const Pages many(2 * kHuge);
  const auto from = reinterpret_cast<std::uintptr_t>(many.data());
  auto* const data = many.data() + (kHuge - from % kHuge) % kHuge;
  std::memset(data, 1, kHuge);
  if (::madvise(data, kHuge, kCollapse) != 0) GTEST_SKIP() << "the kernel makes no huge pages";
  is_taken_over(data, kHuge, [&] { ::madvise(data, kHuge, kCollapse); });
  // And other ones, of which none is huge.
  is_taken_over(data, kHuge, [&] {
    many.replace(static_cast<std::size_t>(data - many.data()), kHuge);
    ASSERT_EQ(::madvise(data, kHuge, MADV_NOHUGEPAGE), 0);
  });
}

// They are no pages that stpd could replace.
TEST_P(Cached, HugePagesOfTheirOwnPoolAreSeen) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  auto* const mapped = ::mmap(nullptr, kHuge, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "the host has no hugepages";
  auto* const data = static_cast<std::byte*>(mapped);
  is_taken_over(data, kHuge, [&] {
    ASSERT_NE(::mmap(data, kHuge, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, -1, 0),
              MAP_FAILED);
  });
  ::munmap(data, kHuge);
}

// A child has what its parent had at the fork, also in memory that the parent once registered.
TEST_P(Cached, AForkInBetweenGivesTheChildItsOwnBytes) {
  pages.fill(1);
  const auto before = lend_once();
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const auto child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(gate[0], &byte, 1) != 1) ::_exit(2);
    for (std::size_t i = 0; i < kSize; ++i)
      if (pages.data()[i] != std::byte{1}) ::_exit(1);
    pages.fill(9);
    ::_exit(0);
  }
  const auto memory = lend();
  EXPECT_TRUE(!lent() || region(memory) != before);
  expect_same_bytes(memory, 40);
  ASSERT_EQ(::write(gate[1], "", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pages.data()[0], std::byte{40});
  expect_same_bytes(memory, 50);
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST_P(Cached, AForkLeavesOtherMemoryAtTheAddressToTheChild) {
  lend_once();
  pages.replace(0, kSize);
  pages.fill(5);
  ASSERT_EQ(::madvise(pages.data(), kSize, MADV_DONTFORK), 0);
  EXPECT_EQ(in_child([] { return true; }), 0);
  // The mark of the program is still there: a child would fault.
  EXPECT_NE(in_child([&] { return pages.data()[kPage] == std::byte{5}; }), 0);
}

TEST_P(Cached, PeersReachNothingThatIsReleased) {
  pages.fill(1);
  auto memory = lend(kRemote);
  stm_region_t region = nullptr;
  const auto remote = open(memory, region);
  std::vector<std::byte> bytes(100, std::byte{2});
  const auto mine = server.memory(bytes.data(), bytes.size());
  ASSERT_EQ(stm_put(server.connection, 1, 0, mine, bytes.data(), 100, remote.key, 0), 0);
  ASSERT_EQ(server.completion(1).status, 0);
  EXPECT_EQ(pages.data()[100], std::byte{2});
  EXPECT_EQ(stm_memory_release(memory), -EBUSY);
  ASSERT_EQ(stm_region_close(region), 0);
  ASSERT_EQ(stm_memory_release(memory), 0);
  EXPECT_EQ(kept(client), 1U);
  const auto expect_refused = [&] {
    pages.fill(1);
    ASSERT_EQ(stm_put(server.connection, 1, 0, mine, bytes.data(), 100, remote.key, 0), 0);
    EXPECT_EQ(server.completion(1).status, -EACCES);
    ASSERT_EQ(stm_get(server.connection, 1, 0, mine, bytes.data(), 100, remote.key, 0), 0);
    EXPECT_EQ(server.completion(1).status, -EACCES);
    EXPECT_EQ(pages.data()[100], std::byte{1});
  };
  expect_refused();
  memory = lend(kRemote);
  expect_refused();
  const auto again = open(memory, region);
  EXPECT_NE(again.key, remote.key);
  expect_refused();
  ASSERT_EQ(stm_get(server.connection, 1, 0, mine, bytes.data(), 100, again.key, 0), 0);
  EXPECT_EQ(server.completion(1).status, 0);
  EXPECT_EQ(bytes[0], std::byte{1});
}

// What peers have sent before the memory was released, and what arrives after it was registered
// again: it names what nobody may use any more.
class Delayed : public testing::Test {
 protected:
  static constexpr unsigned kAccess = STM_LOCAL_WRITE | kRemote;
  void SetUp() override {
    if (!MemoryCache().on()) GTEST_SKIP() << "the kernel does not tell what is mapped where";
    sides.establish();
    std::memset(bytes.data(), 2, bytes.size());
    mine = server.memory(bytes.data(), bytes.size());
    open();
    put(0);  // from now on the peer knows where the region is
    ASSERT_EQ(server.completion(1).status, 0);
    pages.fill(1);
  }
  void open() {
    memory = client.memory(pages.data(), kSize, kAccess);
    ASSERT_EQ(stm_region_open(memory, pages.data(), kSize, kRemote, nullptr, 0, &region, &remote),
              0);
  }
  void put(std::uint64_t at) {
    ASSERT_EQ(stm_put(server.connection, 1, 0, mine, bytes.data(), 100, remote.key, at), 0);
  }
  // What the peer sends now waits until the memory has been released and registered again.
  void register_again_before(wire::Op op) {
    while (!link.port->waits(op)) std::this_thread::yield();
    ASSERT_EQ(stm_region_close(region), 0);
    ASSERT_EQ(stm_memory_release(memory), 0);
    ASSERT_EQ(client::find<Domain>(client.domain)->released().size(), 1U);
    open();
    ASSERT_EQ(client::find<Domain>(client.domain)->released().size(), 0U);
    link.port->release();
  }
  void hold(wire::Op op) {
    link.port->judge([op](wire::Op each) {
      return each == op ? JudgedPort::Fate::kWaits : JudgedPort::Fate::kPasses;
    });
  }

  struct Link {
    JudgedPort* const port = new JudgedPort;
    Daemon daemon{std::unique_ptr<port::Port>(port)};
    UseLink use{daemon.link()};
  } link;
  TwoSides sides;
  Side &server = sides.server, &client = sides.client;
  Pages pages;
  std::vector<std::byte> bytes = std::vector<std::byte>(100);
  stm_memory_t memory = nullptr, mine = nullptr;
  stm_region_t region = nullptr;
  stm_remote_t remote{};
};

TEST_F(Delayed, APutReachesNothing) {
  hold(wire::Op::kData);
  put(200);
  register_again_before(wire::Op::kData);
  EXPECT_EQ(server.completion(1).status, -EACCES);
  put(kPage);
  ASSERT_EQ(server.completion(1).status, 0);
  EXPECT_EQ(pages.data()[kPage], std::byte{2});
  EXPECT_EQ(pages.data()[200], std::byte{1});
}

TEST_F(Delayed, AGetReadsNothing) {
  hold(wire::Op::kGet);
  ASSERT_EQ(stm_get(server.connection, 1, 0, mine, bytes.data(), 100, remote.key, 200), 0);
  register_again_before(wire::Op::kGet);
  EXPECT_EQ(server.completion(1).status, -EACCES);
  EXPECT_EQ(bytes[0], std::byte{2});
  ASSERT_EQ(stm_get(server.connection, 1, 0, mine, bytes.data(), 100, remote.key, 200), 0);
  EXPECT_EQ(server.completion(1).status, 0);
  EXPECT_EQ(bytes[0], std::byte{1});
}

// Its peer may still hold a grant.
TEST_P(Cached, MemoryInWhichAnOperationFailedIsNotKept) {
  const auto memory = lend();
  ASSERT_EQ(stm_get(client.connection, 1, 0, memory, pages.data() + 100, 8, 4711, 0), 0);
  EXPECT_EQ(client.completion(1).status, -EACCES);
  EXPECT_EQ(stm_memory_release(memory), 0);
  EXPECT_EQ(kept(client), 0U);
}

TEST_P(Cached, MemoryThatIsWithdrawnIsKeptIfNothingUsedIt) {
  const auto memory = lend();
  EXPECT_EQ(stm_memory_withdraw(memory), 0);
  EXPECT_EQ(kept(client), 1U);
  const auto used = lend();
  ASSERT_EQ(stm_receive(client.connection, 1, used, pages.data() + 100, 8), 0);
  EXPECT_EQ(stm_memory_withdraw(used), 0);
  EXPECT_EQ(kept(client), 0U);
}

TEST_P(Cached, TheOldestGiveWay) {
  const Pages many((MemoryCache::kMost + 6) * kPage);
  for (std::size_t i = 0; i < MemoryCache::kMost + 6; ++i)
    ASSERT_EQ(stm_memory_release(client.memory(many.data() + i * kPage, kPage)), 0);
  EXPECT_EQ(kept(client), MemoryCache::kMost);
  static_cast<void>(client.memory(many.data(), kPage));
  EXPECT_EQ(kept(client), MemoryCache::kMost) << "the first one was not among them";
  static_cast<void>(client.memory(many.data() + 6 * kPage, kPage));
  EXPECT_EQ(kept(client), MemoryCache::kMost - 1);
}

TEST_P(Cached, TheirBytesAreBounded) {
  const Pages large(MemoryCache::kMostBytes + kPage);
  ASSERT_EQ(stm_memory_release(client.memory(large.data(), MemoryCache::kMostBytes + kPage)), 0);
  EXPECT_EQ(kept(client), 0U);
  lend_once();
  ASSERT_EQ(stm_memory_release(client.memory(large.data(), MemoryCache::kMostBytes)), 0);
  EXPECT_EQ(kept(client), 1U) << "the small one has given way";
}

// stpd takes memory of at most 16 pieces. What is released must not cut others into more.
TEST_P(Cached, WhatIsReleasedDoesNotKeepOtherMemoryFromBeingRegistered) {
  constexpr std::size_t kPieces = 40;
  const Pages whole(kPieces * kPage);
  for (std::size_t i = 0; i < kPieces; i += 2)
    ASSERT_EQ(stm_memory_release(client.memory(whole.data() + i * kPage, kPage)), 0);
  EXPECT_EQ(kept(client), kPieces / 2);
  EXPECT_NE(client.memory(whole.data(), kPieces * kPage, kRemote), nullptr);
}

TEST_P(Cached, WhatOneDomainHasReleasedDoesNotCutTheMemoryOfAnother) {
  constexpr std::size_t kPieces = 40;
  const Pages whole(kPieces * kPage);
  for (std::size_t i = 0; i < kPieces; i += 2)
    ASSERT_EQ(stm_memory_release(client.memory(whole.data() + i * kPage, kPage)), 0);
  const auto memory = server.memory(whole.data(), kPieces * kPage, kRemote);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(stm_memory_release(memory), 0);
  // Each of them is registered anew.
  for (std::size_t i = 0; i < kPieces; i += 2)
    EXPECT_NE(client.memory(whole.data() + i * kPage, kPage), nullptr);
}

TEST_P(Cached, WhatIsReleasedGivesWayWhereNoDescriptorIsFree) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UBSan needs a descriptor to look at a type: without any it sees faults";
#endif
  if (!lent()) GTEST_SKIP() << "a link in the process needs no descriptor for memory";
  constexpr std::size_t kPieces = 20;
  const Pages many(kPieces * kPage);
  for (std::size_t i = 0; i < kPieces; ++i)
    ASSERT_EQ(stm_memory_release(client.memory(many.data() + i * kPage, kPage)), 0);
  const os::UniqueFd last_free(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  stm_memory_t memory = nullptr;
  {
    const FewFiles few(static_cast<rlim_t>(last_free.get()) + 1);
    memory = lend();
  }
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(kept(client), 0U);
  expect_same_bytes(memory, 70);
}

TEST_P(Cached, WhatIsReleasedGivesWayToWhatIsUsedWithinAQuota) {
  if (!lent()) GTEST_SKIP() << "a link in the process has no quota for memory";
  constexpr std::uint64_t kStaging = std::uint64_t{8} << 20;  // more than the library itself takes
  constexpr std::size_t kLarge = std::size_t{16} << 20;
  daemon_->limit_mapped(kStaging + 2 * kLarge);  // each byte is mapped twice
  const Pages first(kLarge), second(kLarge);
  ASSERT_EQ(stm_memory_release(client.memory(first.data(), kLarge)), 0);
  EXPECT_EQ(kept(client), 1U);
  const auto memory = client.memory(second.data(), kLarge);
  EXPECT_EQ(kept(client), 0U);
  stm_memory_t none = nullptr;
  EXPECT_EQ(stm_memory_register(client.domain, first.data(), kLarge, STM_LOCAL_WRITE, &none),
            -EDQUOT)
      << "what is used stays";
  EXPECT_EQ(stm_memory_release(memory), 0);
}

TEST_P(Cached, ADomainThatListensElsewhereBindsThemAnew) {
  lend_once();
  stm_listener_t more = nullptr;
  ASSERT_EQ(stm_listen(client.domain, ":3001", client.queue, 7, 0, &more), 0);
  EXPECT_EQ(kept(client), 0U);
  expect_same_bytes(lend(), 60);
}

TEST_P(Cached, TheEndOfADomainEndsThem) {
  lend_once();
  const std::weak_ptr<Domain> domain = client::find<Domain>(client.domain).share();
  client.close();
  EXPECT_TRUE(domain.expired());
}

TEST_P(Cached, ADaemonThatHasGoneIsNoticed) {
  if (!lent()) GTEST_SKIP() << "only a daemon can go";
  lend_once();
  daemon_->stop();
  // The library hears of it a moment later.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  stm_memory_t made = nullptr;
  int error = 0;
  while ((error = stm_memory_register(client.domain, pages.data() + 100, kSize - 200,
                                      STM_LOCAL_WRITE, &made)) == 0 &&
         std::chrono::steady_clock::now() < until)
    EXPECT_EQ(stm_memory_release(made), 0);
  EXPECT_EQ(error, -ENOTCONN);
}

TEST_P(Cached, TheEnvironmentSwitchesItOff) {
  ::setenv("STP_REGISTRATION_CACHE", "0", 1);
  Side other;
  ::unsetenv("STP_REGISTRATION_CACHE");
  ASSERT_EQ(stm_memory_release(other.memory(pages.data(), kSize)), 0);
  EXPECT_EQ(kept(other), 0U);
  const auto told = [](const Side& side) {
    stm_domain_info_t info{};
    info.size = sizeof info;
    EXPECT_EQ(stm_domain_query(side.domain, &info), 0);
    return info.cache;
  };
  EXPECT_EQ(told(other), static_cast<std::uint32_t>(STM_CACHE_OFF));
  EXPECT_EQ(told(client), static_cast<std::uint32_t>(STM_CACHE_ON));
}

TEST(CacheState, SaysWhyItIsOff) {
  EXPECT_EQ(MemoryCache::state_of(nullptr, true), STM_CACHE_ON);
  EXPECT_EQ(MemoryCache::state_of("1", true), STM_CACHE_ON);
  EXPECT_EQ(MemoryCache::state_of("0", true), STM_CACHE_OFF);
  EXPECT_EQ(MemoryCache::state_of("0", false), STM_CACHE_OFF);
  EXPECT_EQ(MemoryCache::state_of("1", false), STM_CACHE_CANNOT);
}

}  // namespace
}  // namespace stp::test::memory_cache_test
