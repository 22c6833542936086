// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/wrong_keys.h"

#include <chrono>

#include "libst/managed/domain.h"
#include "tests/managed/managed_fixture.h"

namespace stp::managed::wrong_keys_test {
namespace {

constexpr Time kNow = 1'000 * kSecond;

TEST(WrongKeysOfADomain, AreToldAtOnceAndThenSoManyASecond) {
  WrongKeys keys;
  for (unsigned i = 0; i < WrongKeys::kAtOnce; ++i) ASSERT_EQ(keys.next(kNow), kNow);
  Time last = kNow;
  for (unsigned i = 1; i < WrongKeys::kASecond; ++i) {
    last = keys.next(kNow);
    ASSERT_EQ(last, kNow + i * (kSecond / WrongKeys::kASecond));
  }
  // Nobody waits longer than that, and those before have not made it longer for ever.
  for (unsigned i = 0; i < 10 * WrongKeys::kAtOnce; ++i)
    ASSERT_LE(keys.next(kNow), kNow + WrongKeys::kLongest);
  EXPECT_LE(keys.next(kNow + kSecond), kNow + 2 * kSecond);
  const auto later = kNow + 10 * kSecond;
  for (unsigned i = 0; i < WrongKeys::kAtOnce; ++i) ASSERT_EQ(keys.next(later), later);
  EXPECT_GT(keys.next(later), later);
}

}  // namespace
}  // namespace stp::managed::wrong_keys_test

namespace stp::test::wrong_keys_test {
namespace {

class GuessedKeys : public ManagedApi {
 protected:
  // The next wrong key is told that much later than now, if the peer names it at once.
  void use_up(Time later) {
    const auto domain =
        client::find<managed::Domain>(reinterpret_cast<client::Handle>(server.domain));
    const Lock guard(domain->mutex());
    const auto now = domain->now();
    while (domain->wrong_keys().next(now) < now + later) {
    }
  }
  std::uint32_t key() {
    stm_region_t region = nullptr;
    stm_remote_t remote{};
    EXPECT_EQ(
        stm_region_open(there, buffer.data(), 64, STM_REMOTE_WRITE, nullptr, 0, &region, &remote),
        0);
    return remote.key;
  }
  void put(std::uint64_t context, std::uint32_t key) {
    EXPECT_EQ(stm_put(client.connection, context, 0, mine, source.data(), 8, key, 0), 0);
  }

  Buffer buffer{4096}, source{4096};
  stm_memory_t there = server.memory(buffer.data(), 4096, STM_REMOTE_WRITE);
  stm_memory_t mine = client.memory(source.data(), source.size());
};
STP_BOTH_WAYS(GuessedKeys);

// Nobody sees by an early answer that a key behind a wrong one is right.
TEST_P(GuessedKeys, AreToldLaterAndWhatComesBehindThemWaits) {
  constexpr auto kLater = std::chrono::milliseconds(50);
  const auto right = key(), before = key();
  put(1, before);
  EXPECT_EQ(client.completion(1).status, 0);
  use_up(kLater.count() * kMillisecond);
  const auto began = std::chrono::steady_clock::now();
  put(2, right + 2 != before ? right + 2 : right + 4);
  put(3, right);
  put(4, before);  // it is known to be right
  EXPECT_EQ(client.completion(4).status, 0);
  EXPECT_EQ(client.completion(2).status, -EACCES);
  EXPECT_EQ(client.completion(3).status, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - began, kLater / 2);
}

TEST_P(GuessedKeys, OfWhoGoesLeaveNothing) {
  use_up(kSecond / 2);
  put(1, 0x12345678);
  put(2, 0x12345679);
  EXPECT_TRUE(client.quiet());
  ASSERT_EQ(stm_disconnect(client.connection, STM_ABRUPT), 0);
  EXPECT_EQ(client.completion(1).status, -ECANCELED);
  EXPECT_EQ(client.completion(2).status, -ECANCELED);
  EXPECT_EQ(server.next(STM_DISCONNECTED).kind, unsigned{STM_DISCONNECTED});
}

}  // namespace
}  // namespace stp::test::wrong_keys_test
