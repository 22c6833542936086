// SPDX-License-Identifier: BSD-3-Clause
// Memory that cannot be shared with a daemon is copied if it is short and no peer accesses it:
// programs register memory on their stack, and parts of shared mappings.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

constexpr std::size_t kMost = 64 * 1024;
constexpr unsigned kRemote = STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC;

using Bytes64K = std::array<unsigned char, kMost>;

// Part of a shared mapping, which cannot be shared with a daemon.
class Shared {
 public:
  explicit Shared(const Bytes64K& bytes = {})
      : all(*new (::mmap(nullptr, sizeof bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Bytes64K(bytes)) {}
  ~Shared() { ::munmap(&all, sizeof all); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Bytes64K& all;
};

class StandIns : public ManagedApi {
 protected:
  [[nodiscard]] static bool lent() { return GetParam() == Way::kThroughDaemon; }
  static Bytes64K pattern(unsigned seed) {
    Bytes64K bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<unsigned char>(i * 7 + i / 251 + seed);
    return bytes;
  }
};
STP_BOTH_WAYS(StandIns);

TEST_P(StandIns, MessagesGoFromStackToStack) {
  const auto from = pattern(1);
  const auto original = from;
  for (const std::size_t length : {1UL, 4'000UL, 5'000UL, kMost}) {
    Bytes64K to{};
    const auto source = client.memory(const_cast<unsigned char*>(from.data()), from.size(), 0);
    const auto sink = server.memory(to.data(), to.size());
    const auto at = kMost - length;  // not at the same place at both ends
    ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data(), to.size()), 0);
    ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data() + at, length), 0);
    const auto received = server.completion(2);
    EXPECT_EQ(received.status, 0);
    EXPECT_EQ(received.length, length);
    EXPECT_TRUE(std::equal(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(length),
                           from.begin() + static_cast<std::ptrdiff_t>(at)));
    EXPECT_TRUE(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(length), to.end(),
                            [](auto byte) { return byte == 0; }))
        << "bytes behind the message were written";
    EXPECT_EQ(client.completion(1).status, 0);
    EXPECT_EQ(stm_memory_release(source), 0);
    EXPECT_EQ(stm_memory_release(sink), 0);
  }
  EXPECT_EQ(from, original);
}

TEST_P(StandIns, EachSendTakesWhatIsThereThen) {
  Shared first, second;
  auto &from = first.all, &to = second.all;
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  for (unsigned round = 0; round < 10; ++round) {
    from = pattern(round);
    ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data(), to.size()), 0);
    ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data(), from.size()), 0);
    ASSERT_EQ(server.completion(2).status, 0);
    ASSERT_EQ(client.completion(1).status, 0);
    ASSERT_EQ(to, from) << "round " << round;
  }
}

TEST_P(StandIns, ReadsPutsGetsAndFetchesAreCopiedToo) {
  Buffer there(1 << 17, 0, false);
  const auto memory = server.memory(there.data(), there.size(), kRemote);
  stm_region_t region = nullptr;
  stm_remote_t remote{};
  ASSERT_EQ(
      stm_region_open(memory, there.data(), there.size(), kRemote, nullptr, 0, &region, &remote),
      0);

  Shared mine(pattern(3)), arrived, other(pattern(9)), place;
  auto &from = mine.all, &to = arrived.all, &served = other.all;
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = client.memory(to.data(), to.size());
  ASSERT_EQ(stm_put(client.connection, 1, 0, source, from.data() + 5, 60'000, remote.key, 8), 0);
  ASSERT_EQ(client.completion(1).status, 0);
  EXPECT_EQ(std::memcmp(there.data() + 8, from.data() + 5, 60'000), 0);

  ASSERT_EQ(stm_get(client.connection, 2, 0, sink, to.data() + 1, 60'000, remote.key, 8), 0);
  ASSERT_EQ(client.completion(2).status, 0);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(std::memcmp(to.data() + 1, from.data() + 5, 60'000), 0);
  EXPECT_EQ(to[60'001], 0);

  std::uint64_t first = 0;
  auto& old = *new (place.all.data()) std::uint64_t(0);
  std::memcpy(&first, there.data() + 8, sizeof first);
  const auto word = client.memory(&old, sizeof old);
  ASSERT_EQ(stm_fetch(client.connection, 3, 0, STM_FETCH_ADD, 4, 0, word, &old, remote.key, 8), 0);
  ASSERT_EQ(client.completion(3).status, 0);
  EXPECT_EQ(old, first);

  const auto answer = server.memory(served.data(), served.size(), STM_LOCAL_READ);
  ASSERT_EQ(stm_read(client.connection, 4, 0, sink, to.data(), to.size()), 0);
  const auto asked = server.next(STM_READ_REQUEST);
  ASSERT_EQ(
      stm_serve_read(server.connection, asked.request, 5, 0, answer, served.data(), served.size()),
      0);
  ASSERT_EQ(client.completion(4).status, 0);
  ASSERT_EQ(server.completion(5).status, 0);
  EXPECT_EQ(to, served);
}

TEST_P(StandIns, APartOfASharedMappingIsCopiedAndStaysShared) {
  auto* const mine = static_cast<unsigned char*>(
      ::mmap(nullptr, 4'096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Buffer to(1 << 13, 0, false);
  const auto both = client.memory(mine, 4'096);
  const auto sink = server.memory(to.data(), to.size());
  std::memset(mine, 5, 4'096);
  ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data(), to.size()), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 0, both, mine, 4'096), 0);
  EXPECT_EQ(server.completion(2).status, 0);
  EXPECT_EQ(client.completion(1).status, 0);
  EXPECT_EQ(std::memcmp(to.data(), mine, 4'096), 0);
  EXPECT_EQ(stm_memory_release(both), 0);
  ::munmap(mine, 4'096);
}

TEST_P(StandIns, TextOfTheProgramIsSent) {
  static const char text[] = "a literal, in memory that nobody may write";
  Buffer to(1 << 12, 0, false);
  const auto source = client.memory(const_cast<char*>(text), sizeof text, STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data(), to.size()), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, text, sizeof text), 0);
  EXPECT_EQ(server.completion(2).status, 0);
  EXPECT_STREQ(reinterpret_cast<const char*>(to.data()), text);
  EXPECT_EQ(client.completion(1).status, 0);
}

// Through a daemon: peers would not reach the program's own bytes, and long memory is not copied.
TEST_P(StandIns, WhatPeersAccessAndWhatIsLongIsRefusedWithTheReason) {
  auto* const mine = static_cast<unsigned char*>(
      ::mmap(nullptr, 2 * kMost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto refused = [&](std::size_t length, unsigned access) {
    stm_memory_t memory = nullptr;
    const auto error = stm_memory_register(client.domain, mine, length, access, &memory);
    EXPECT_EQ(error, lent() ? -EOPNOTSUPP : 0);
    if (error == 0) return stm_memory_release(memory) == 0;
    return std::strstr(st_strerror(error), "shared mapping") != nullptr;
  };
  EXPECT_TRUE(refused(kMost + 1, STM_LOCAL_READ));
  EXPECT_TRUE(refused(100, STM_REMOTE_WRITE));
  EXPECT_TRUE(refused(100, STM_REMOTE_READ));
  ::munmap(mine, 2 * kMost);
}

}  // namespace
}  // namespace stp::test
