// SPDX-License-Identifier: BSD-3-Clause
// fork() in a program with registered memory: the child has its own copy of the bytes, and the
// parent's memory is still sent, received into and written by peers.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

constexpr std::size_t kPage = 4096, kPages = 6;
constexpr std::size_t kStackPages = 8;
constexpr std::size_t kLead = 1000;  // unregistered bytes at the beginning of the first page

// Rounds of the tests that fork all the time. With ThreadSanitizer a fork takes a tenth of a
// second.
#if defined(__SANITIZE_THREAD__)
constexpr int kForks = 12;
#else
constexpr int kForks = 60;
#endif

// Runs `act` in a child. Its result is the exit status; the child ends without destructors.
int in_child(const std::function<int()>& act, int (*make)() = ::fork) {
  const auto child = make();
  if (child == 0) ::_exit(act());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class Forking : public ManagedApi {
 protected:
  Forking()
      : base(static_cast<std::byte*>(::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(base, 1, kPages * kPage);
  }
  ~Forking() override { ::munmap(base, kPages * kPage); }

  // Registers all but kLead bytes at both ends.
  stm_memory_t lend() {
    return server.memory(base + kLead, kPages * kPage - 2 * kLead,
                         STM_REMOTE_WRITE | STM_REMOTE_READ);
  }
  [[nodiscard]] bool all_are(int value) const {
    for (std::size_t i = 0; i < kPages * kPage; ++i)
      if (base[i] != std::byte(value)) return false;
    return true;
  }
  int scribble() const {
    if (!all_are(1)) return 1;
    std::memset(base, 2, kPages * kPage);
    return all_are(2) ? 0 : 2;
  }
  // The client sends a message, and the server receives it into `at`.
  void expect_message(stm_memory_t into, std::byte* at, std::size_t length, int value) {
    const std::vector<std::byte> data(length, std::byte(value));
    const auto from = client.memory(const_cast<std::byte*>(data.data()), length);
    ASSERT_EQ(stm_receive(server.connection, 5, into, at, length), 0);
    ASSERT_EQ(stm_send(client.connection, 6, 0, 0, from, data.data(), length), 0);
    EXPECT_EQ(server.completion(5).status, 0);
    EXPECT_EQ(client.completion(6).status, 0);
    EXPECT_EQ(std::memcmp(at, data.data(), length), 0);
    EXPECT_EQ(stm_memory_release(from), 0);
  }

  std::byte* const base;
};
STP_BOTH_WAYS(Forking);

TEST_P(Forking, TheChildsWritesAreItsOwn) {
  const auto memory = lend();
  EXPECT_EQ(in_child([&] { return scribble(); }), 0);
  EXPECT_TRUE(all_are(1));
  EXPECT_EQ(in_child([&] { return scribble(); }), 0) << "once more";
  EXPECT_TRUE(all_are(1));
  expect_message(memory, base + kLead, kPage, 3);
  expect_message(memory, base + kLead + 2 * kPage, 3 * kPage, 4);
}

// The unregistered bytes of a shared page are the child's own, and its child's.
TEST_P(Forking, AChildThatForksAgainLeavesTheParentAlone) {
  const auto memory = lend();
  EXPECT_EQ(in_child([&] {
              std::memset(base, 2, kPages * kPage);
              const auto grandchild = in_child([&] {
                if (!all_are(2)) return 1;
                std::memset(base, 3, kPages * kPage);
                return 0;
              });
              if (grandchild != 0) return 1;
              return all_are(2) ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(all_are(1));
  expect_message(memory, base + kLead, kPage, 4);
}

// Other libraries may call MADV_DOFORK, such as a verbs library for its own regions.
TEST_P(Forking, PagesThatOthersPutIntoForksAgainAreTheChildsOwn) {
  const auto memory = lend();
  ASSERT_EQ(::madvise(base, kPages * kPage, MADV_DOFORK), 0);
  EXPECT_EQ(in_child([&] { return scribble(); }), 0);
  EXPECT_TRUE(all_are(1));
  expect_message(memory, base + kLead, kPage, 3);
}

// realloc() can extend a block that is a mapping of its own. Pages that were registered earlier
// would then end in the middle of it.
TEST_P(Forking, ABlockThatWasRegisteredCanGrow) {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);  // a mapping of its own, whatever was freed before
  auto* block = static_cast<std::byte*>(std::malloc(kSize));
  std::memset(block, 7, kSize);
  ASSERT_EQ(stm_memory_release(client.memory(block, kSize)), 0);
  block = static_cast<std::byte*>(std::realloc(block, 4 * kSize));
  ASSERT_NE(block, nullptr);
  std::memset(block + kSize, 7, 3 * kSize);
  for (std::size_t i = 0; i < 4 * kSize; ++i) ASSERT_EQ(block[i], std::byte{7}) << i;
  std::free(block);
}

// For example a guard page, or one that a garbage collector watches.
TEST_P(Forking, PagesThatTheProgramMayNotReadAreLeftToo) {
  const auto memory = lend();
  auto* const last = base + (kPages - 1) * kPage;
  ASSERT_EQ(::mprotect(base, kPages * kPage, PROT_NONE), 0);
  const auto open_all = [&] {
    return ::mprotect(base, kPages * kPage, PROT_READ | PROT_WRITE) == 0 ? scribble() : 3;
  };
  EXPECT_EQ(in_child(open_all), 0) << "registered";
  ASSERT_EQ(::mprotect(base, kPages * kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(all_are(1));
  expect_message(memory, last, kPage - kLead, 1);
  ASSERT_EQ(stm_memory_release(memory), 0);
  ASSERT_EQ(::mprotect(base, kPages * kPage, PROT_NONE), 0);
  EXPECT_EQ(in_child(open_all), 0) << "no more";
  ASSERT_EQ(::mprotect(base, kPages * kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(all_are(1));
}

TEST_P(Forking, AProgramWithoutADescriptorLeftForksAsAnyOther) {
  const auto memory = lend();
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto none = rlimit{0, before.rlim_max};
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto status = in_child([&] { return scribble(); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(all_are(1));
  }
  EXPECT_EQ(in_child([&] { return scribble(); }), 0) << "with descriptors again";
  EXPECT_TRUE(all_are(1));
  expect_message(memory, base + kLead, kPage, 3);
}

// A page that cannot be copied is missing in the child; it is never shared with the child.
TEST_P(Forking, AChildSharesNothingWhereMemoryHasRunOut) {
  if (GetParam() == Way::kInProcess) GTEST_SKIP() << "nothing is shared";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs memory of its own";
#endif
  const auto memory = lend();
  // The library's and the daemon's threads are in this process. After this time they have finished
  // their work for the connection; for later work the heap has free memory.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  constexpr int kFree = 32 << 20;
  ASSERT_EQ(::mallopt(M_TRIM_THRESHOLD, kFree), 1);
  ASSERT_EQ(::mallopt(M_MMAP_THRESHOLD, kFree), 1);
  std::free(std::malloc(kFree / 2));
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const auto none = rlimit{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  const auto status = in_child([&] {
    base[0] = std::byte{2};
    return 0;
  });
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(status, 1000 + SIGSEGV);
  EXPECT_TRUE(all_are(1));
  EXPECT_EQ(in_child([&] { return scribble(); }), 0) << "with memory again";
  EXPECT_TRUE(all_are(1));
  expect_message(memory, base + kLead, kPage, 3);
}

TEST_P(Forking, ThePagesOfMemoryThatIsNoLongerRegisteredAreTheChildsToo) {
  ASSERT_EQ(stm_memory_release(lend()), 0);
  EXPECT_EQ(in_child([&] { return scribble(); }), 0);
  EXPECT_TRUE(all_are(1));
  expect_message(lend(), base + kLead, kPage, 3);
}

// Whether the page at `at` belongs to a shared mapping. Reads the file into the stack, because
// writes to a page of the heap may have to wait during a fork.
bool is_shared(const void* at) {
  std::ifstream maps;
  char block[16'384];
  maps.rdbuf()->pubsetbuf(block, sizeof block);
  maps.open("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, rights) == 3 &&
        begin <= wanted && wanted < end)
      return rights[3] == 's';
  }
  return false;
}

// Calls `act` with the stack pointer at `at`, which is further down the stack.
[[gnu::noinline]] void with_stack_at(const std::byte* at, const std::function<void()>& act) {
  const auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
  auto* const gap =
      static_cast<volatile std::byte*>(__builtin_alloca(static_cast<std::size_t>(here - at)));
  *gap = std::byte{0};
  act();
  *gap = std::byte{1};
}

// Calls `act` with the address of kStackPages pages of the stack, which it may use.
[[gnu::noinline]] void with_stack_memory(const std::function<void(std::byte*)>& act) {
  act(static_cast<std::byte*>(__builtin_alloca(kStackPages * kPage)));
}

TEST_P(Forking, AThreadForksWhereItsStackWasRegisteredEarlier) {
  std::byte* middle = nullptr;
  with_stack_memory([&](std::byte* at) {
    middle = at + kStackPages / 2 * kPage;
    // Another thread may replace the page of `at`, on which this one may be running.
    std::thread([&] {
      EXPECT_EQ(stm_memory_release(server.memory(at, kStackPages * kPage)), 0);
    }).join();
  });
  with_stack_at(middle, [&] {
    EXPECT_EQ(is_shared(middle), GetParam() == Way::kThroughDaemon);
    EXPECT_EQ(in_child([&] { return scribble(); }), 0);
    EXPECT_FALSE(is_shared(middle));
  });
  EXPECT_TRUE(all_are(1));
}

TEST_P(Forking, AThreadForksWhereItsStackIsRegistered) {
  with_stack_memory([&](std::byte* at) {
    stm_memory_t memory = nullptr;
    std::thread([&] {
      memory = server.memory(at + 64, 100);
    }).join();  // that thread may replace it
    EXPECT_EQ(in_child([&] {
                std::memset(at, 9, 64 + 100);
                return scribble();
              }),
              0);
    expect_message(memory, at + 64, 100, 3);
    EXPECT_EQ(stm_memory_release(memory), 0);
  });
}

TEST_P(Forking, TheRestOfAPageIsAsItWasAtTheFork) {
  const auto memory = lend();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto child = ::fork();
  if (child == 0) {
    char go = 0;
    const auto told = ::read(ends[0], &go, 1) == 1;
    ::_exit(told && base[0] == std::byte{1} && base[kPages * kPage - 1] == std::byte{1} ? 0 : 1);
  }
  base[0] = base[kPages * kPage - 1] = std::byte{9};
  ASSERT_EQ(::write(ends[1], "g", 1), 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  expect_message(memory, base + kLead, kPage, 3);
  EXPECT_EQ(base[0], std::byte{9});
}

TEST_P(Forking, AChildThatExecsLeavesTheParentAlone) {
  lend();
  EXPECT_EQ(in_child([&] {
              scribble();
              ::execl("/bin/true", "true", nullptr);
              return 3;
            }),
            0);
  EXPECT_TRUE(all_are(1));
}

// Frees blocks that share their first and last pages with other blocks, as destructors do.
TEST_P(Forking, AChildThatFreesAndExitsLeavesTheParentsHeapAlone) {
  for (int round = 0; round < 10; ++round) {
    std::vector<void*> blocks;
    std::vector<stm_memory_t> lent;
    for (std::size_t size = 500; size < 60'000; size += size / 2) {
      blocks.push_back(std::malloc(size));
      std::memset(blocks.back(), 7, size);
      lent.push_back(client.memory(blocks.back(), size));
    }
    const auto child = ::fork();
    if (child == 0) {
      for (auto* const block : blocks) std::free(block);
      for (std::size_t size = 16; size < 100'000; size += size / 3) std::free(std::malloc(size));
      ::_exit(0);
    }
    for (std::size_t size = 16; size < 100'000; size += size / 3) std::free(std::malloc(size));
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (const auto memory : lent) EXPECT_EQ(stm_memory_release(memory), 0);
    for (auto* const block : blocks) std::free(block);
  }
}

// A thread increments a counter on a page while the page is registered, released, and copied for
// children. There are so many pages that copying them takes a while.
TEST_P(Forking, WhatOtherThreadsWriteMeanwhileIsNotLost) {
  constexpr std::size_t kMany = 512 * kPage;
  auto* const large = static_cast<std::byte*>(::mmap(
      nullptr, kMany, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  auto* const counts = reinterpret_cast<std::atomic<std::uint64_t>*>(large);
  std::uint64_t counted = 0;
  std::atomic<bool> stop{false};
  std::thread counter([&] {
    while (!stop) {
      counts->fetch_add(1);
      if (counts->load() != ++counted) break;  // it has lost one of its own writes
    }
  });
  for (int round = 0; round < 40; ++round) {
    const auto memory = server.memory(large + kLead, kMany - kLead);
    if (round % 4 == 0) {
      EXPECT_EQ(in_child([] { return 0; }), 0);
    }
    ASSERT_EQ(stm_memory_release(memory), 0);
    if (round % 8 == 0) {
      EXPECT_EQ(in_child([] { return 0; }), 0);
    }
  }
  stop = true;
  counter.join();
  EXPECT_EQ(counts->load(), counted);
  ::munmap(large, kMany);
}

TEST_P(Forking, ForksInTheMiddleOfTransfersHurtNoByte) {
  const auto memory = lend();
  std::vector<std::byte> source(kPages * kPage - 2 * kLead);
  const auto from = client.memory(source.data(), source.size());
  std::atomic<bool> stop{false};
  std::thread forker([&] {
    while (!stop) {
      const auto child = ::fork();
      if (child == 0) {
        std::memset(base, 0xee, kPages * kPage);
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
  });
  for (int round = 0; round < 2 * kForks; ++round) {
    std::memset(source.data(), round, source.size());
    ASSERT_EQ(stm_receive(server.connection, 5, memory, base + kLead, source.size()), 0);
    ASSERT_EQ(stm_send(client.connection, 6, 0, 0, from, source.data(), source.size()), 0);
    ASSERT_EQ(server.completion(5).status, 0);
    ASSERT_EQ(client.completion(6).status, 0);
    ASSERT_EQ(std::memcmp(base + kLead, source.data(), source.size()), 0) << round;
  }
  stop = true;
  forker.join();
  for (std::size_t i = 0; i < kLead; ++i) ASSERT_EQ(base[i], std::byte{1});
}

// A child that is made without fork()'s handlers lacks the pages that are registered as a whole.
TEST_P(Forking, AChildOfTheBareSystemCallMissesWhatIsRegisteredWhole) {
  if (GetParam() == Way::kInProcess) GTEST_SKIP() << "nothing is shared";
  lend();
  const auto missing = [&] {
    unsigned char there = 0;
    return ::mincore(base + kPage, kPage, &there) != 0 && errno == ENOMEM ? 0 : 1;
  };
  EXPECT_EQ(in_child(missing, [] { return static_cast<int>(::syscall(SYS_fork)); }), 0);
  EXPECT_EQ(in_child([&] { return missing() == 0 ? 1 : 0; }), 0) << "but for fork()";
  EXPECT_TRUE(all_are(1));
}

// Memory that is being registered while another thread forks stays shared. Uses level 0, because
// the managed layer makes forks wait.
TEST_P(Forking, WhatIsLentDuringAForkStaysShared) {
  if (GetParam() == Way::kInProcess) GTEST_SKIP() << "nothing is shared";
  Endpoint endpoint(":4000");
  set_option(endpoint, ST_OPT_BUFSIZE_LOCAL, 12);
  std::atomic<bool> stop{false};
  std::thread forker([&] {
    while (!stop) in_child([] { return 0; });
  });
  for (int round = 0; round < kForks; ++round) {
    void* made = nullptr;
    st_mhandle_t own = nullptr;
    EXPECT_EQ(st_malloc(endpoint, 4 * kPage, -1, &made), 0);
    EXPECT_TRUE(is_shared(made)) << round;
    EXPECT_EQ(st_free(made), 0);
    EXPECT_EQ(st_map(endpoint, ST_MAP_TX, base, kPages * kPage, 0, -1, &own, nullptr), 0);
    for (std::size_t i = 0; i < kPages; ++i) EXPECT_TRUE(is_shared(base + i * kPage)) << round;
    EXPECT_EQ(st_unmap(own), 0);
  }
  stop = true;
  forker.join();
}

// Level 0: whole buffers, and memory of st_malloc.
TEST_P(Forking, WhatStMapHasLentIsTheChildsOwn) {
  Endpoint endpoint(":4000");
  const unsigned bufsize = 12;
  set_option(endpoint, ST_OPT_BUFSIZE_LOCAL, bufsize);
  void* made = nullptr;
  ASSERT_EQ(st_malloc(endpoint, 4 * kPage, -1, &made), 0);
  std::memset(made, 1, 4 * kPage);
  st_mhandle_t own = nullptr, given = nullptr;
  ASSERT_EQ(st_map(endpoint, ST_MAP_TX, base, kPages * kPage, 0, -1, &own, nullptr), 0);
  ASSERT_EQ(st_map(endpoint, ST_MAP_TX, made, 4 * kPage, 100, -1, &given, nullptr), 0);
  EXPECT_EQ(in_child([&] {
              std::memset(made, 2, 4 * kPage);
              return scribble();
            }),
            0);
  EXPECT_TRUE(all_are(1));
  EXPECT_EQ(*static_cast<char*>(made), 1);
  EXPECT_EQ(st_unmap(given), 0);
  EXPECT_EQ(st_free(made), 0);
}

}  // namespace
}  // namespace stp::test
