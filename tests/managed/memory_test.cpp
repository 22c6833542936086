// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "tests/managed/managed_fixture.h"
#include "tests/managed/scripted_link.h"

namespace stp::test {
namespace {

using managed::BufxSpace;
constexpr auto kEntries = BufxSpace::kEntries;

TEST(BufxSpace, the_lowest_range_that_is_large_enough_is_taken) {
  BufxSpace space;
  EXPECT_EQ(space.take(10), 0U);
  EXPECT_EQ(space.take(5), 10U);
  EXPECT_EQ(space.take(10), 15U);
  space.give_back(10, 5);
  EXPECT_EQ(space.take(6), 25U) << "the hole is too small";
  EXPECT_EQ(space.take(5), 10U);
}

TEST(BufxSpace, it_ends_with_its_last_value) {
  BufxSpace space;
  EXPECT_EQ(space.take(kEntries + 1), std::nullopt);
  EXPECT_EQ(space.take(kEntries), 0U);
  EXPECT_EQ(space.take(1), std::nullopt);
  space.give_back(kEntries - 1, 1);
  EXPECT_EQ(space.take(1), kEntries - 1);
}

TEST(BufxSpace, neighbours_become_one_whichever_comes_back_first) {
  for (const auto& order : {std::vector<std::uint32_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    BufxSpace space;
    ASSERT_EQ(space.take(kEntries), 0U);
    for (const auto third : order) space.give_back(third * 100, 100);
    EXPECT_EQ(space.take(300), 0U);
    EXPECT_EQ(space.take(1), std::nullopt);
  }
}

// Against a plain array, in an order that a seed decides.
TEST(BufxSpace, no_value_is_given_to_two) {
  BufxSpace space;
  std::vector<bool> taken(2'000);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  std::mt19937 random(1);
  for (int i = 0; i < 5'000; ++i) {
    if (!ranges.empty() && (random() % 2 == 0 || ranges.size() > 60)) {
      const auto at = random() % ranges.size();
      const auto [first, count] = ranges[at];
      space.give_back(first, count);
      for (std::uint32_t j = 0; j < count; ++j) taken[first + j] = false;
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const auto count = static_cast<std::uint32_t>(1 + random() % 20);
    const auto first = space.take(count);
    ASSERT_TRUE(first && *first + count <= taken.size());
    for (std::uint32_t j = 0; j < count; ++j) {
      ASSERT_FALSE(taken[*first + j]) << i;
      taken[*first + j] = true;
    }
    ranges.emplace_back(*first, count);
  }
}

}  // namespace
}  // namespace stp::test

namespace stp::managed {
namespace {

using Memories = OnScriptedLink;

TEST_F(Memories, ContainsWhatIsInItAndNothingElse) {
  const auto memory = this->memory(STM_LOCAL_WRITE);
  const auto* const begin = bytes.data();
  const auto size = bytes.size();
  EXPECT_TRUE(memory->contains(begin, size));
  EXPECT_TRUE(memory->contains(begin + size, 0));
  EXPECT_FALSE(memory->contains(begin, size + 1));
  EXPECT_FALSE(memory->contains(begin + 1, size));
  EXPECT_FALSE(memory->contains(begin + size, 1));
  EXPECT_FALSE(memory->contains(begin - 1, 1));
  EXPECT_FALSE(memory->contains(begin + 1, SIZE_MAX)) << "the end would be before the beginning";
}

TEST_F(Memories, AreBoundToWholePagesWithTheSameNamesOnEachEndpoint) {
  const EndpointId ends[] = {endpoint(), endpoint()};
  const auto memory = bound(STM_LOCAL_WRITE);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bound_size() % 4096, 0U);
  EXPECT_GE(memory->bound_size(), bytes.size());
  const auto maps = link->sent(Kind::kMap);
  ASSERT_EQ(maps.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(maps[i].endpoint, ends[i / 2]);
    EXPECT_EQ(maps[i].base, maps[0].base);
    EXPECT_EQ(maps[i].direction,
              static_cast<std::uint32_t>(i % 2 == 0 ? Direction::kTransmit : Direction::kReceive));
  }
  const auto landing = memory->landing(ends[1], bytes.data() + 5, 6);
  EXPECT_EQ(landing.at, memory->at(bytes.data() + 5));
  EXPECT_EQ(landing.length, 6U);
  EXPECT_NE(landing.mx, memory->landing(ends[0], bytes.data(), 1).mx);
}

TEST_F(Memories, WhatIsOnlyReadIsNothingThatAPeerCanReach) {
  const auto to = endpoint();
  const auto memory = bound(STM_LOCAL_READ);
  ASSERT_TRUE(memory);
  EXPECT_FALSE(memory->writable());
  EXPECT_EQ(memory->receive_region(to), kNoneId);
  EXPECT_EQ(memory->landing(to, bytes.data(), 1).mx, 0U);
  EXPECT_EQ(link->count(Kind::kMap), 1U);
  EXPECT_EQ(link->count(Kind::kAllocMx), 0U);
}

// Whichever request is refused: all that was mapped before is unmapped, and its names are free.
TEST_F(Memories, ThatCannotBeBoundLeaveNothingBehind) {
  for (int i = 0; i < 2; ++i) endpoint();
  for (std::size_t fails = 0; fails < 6; ++fails) {
    link->requests.clear();
    link->refuse = [&](const auto& request) {
      const bool binds = request.kind == Kind::kMap || request.kind == Kind::kAllocMx;
      return binds && link->count(Kind::kMap) + link->count(Kind::kAllocMx) == fails + 1 ? -ENOSPC
                                                                                         : 0;
    };
    const auto memory = this->memory(STM_LOCAL_WRITE);
    EXPECT_EQ(add(memory), -ENOSPC);
    const std::size_t mapped[] = {0, 1, 2, 2, 3, 4};
    EXPECT_EQ(link->count(Kind::kUnmap), mapped[fails]);
    const Lock control(domain->control_mutex());
    for (const auto each : domain->endpoints()) EXPECT_EQ(memory->receive_region(each), kNoneId);
  }
  const auto first = link->sent(Kind::kMap).front().base;
  link->refuse = {};
  link->requests.clear();
  ASSERT_TRUE(bound(STM_LOCAL_WRITE));
  EXPECT_EQ(link->sent(Kind::kMap).front().base, first) << "the names were free again";
}

TEST_F(Memories, AreUnboundWhenNoFrameUsesThemAnyMore) {
  endpoint();
  const auto memory = bound(STM_LOCAL_READ);
  ASSERT_TRUE(memory);
  unsigned busy = 3;
  link->refuse = [&busy](const auto& request) {
    return request.kind == Kind::kUnmap && busy-- != 0 ? -EINPROGRESS : 0;
  };
  const Lock control(domain->control_mutex());
  memory->unbind();
  EXPECT_EQ(link->count(Kind::kUnmap), 4U);
  memory->unbind();
  EXPECT_EQ(link->count(Kind::kUnmap), 4U) << "once only";
}

TEST_F(Memories, OfLongBuffersAreAlignedToThem) {
  const auto large = open(link, 16);
  const auto size = std::size_t{1} << 16;
  std::vector<std::byte> room(3 * size);
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(room.data()) + size - 1) / size * size);
  const Lock control(large->control_mutex());
  const auto bind = [&](std::byte* at, std::size_t length) {
    Memory memory(large, {at, length}, STM_LOCAL_READ);
    const auto error = memory.bind();
    memory.unbind();
    return error;
  };
  EXPECT_EQ(bind(aligned, size), 0);
  EXPECT_EQ(bind(aligned, size - 1), -EINVAL);
  EXPECT_EQ(bind(aligned + 4096, size), -EINVAL);
}

TEST_F(Memories, ThatAreNotThereAreNotBound) {
  endpoint();
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{4096});
  EXPECT_EQ(add(std::make_shared<Memory>(domain, MutableBytes{nowhere, 10}, STM_LOCAL_READ)),
            -EFAULT);
  EXPECT_EQ(link->count(Kind::kMap), 0U);
}

TEST_F(Memories, TakeNoMoreNamesThanTheDomainHas) {
  {
    const Lock guard(domain->mutex());
    ASSERT_TRUE(domain->bufx_space().take(BufxSpace::kEntries - 1));
  }
  EXPECT_EQ(add(memory(STM_LOCAL_READ)), -EDQUOT);
  EXPECT_EQ(link->count(Kind::kMap), 0U);
}

class Accesses : public OnScriptedLink {
 protected:
  std::shared_ptr<Access> grant(std::shared_ptr<Memory> memory, unsigned rights) {
    const Lock guard(domain->mutex());
    ++memory->uses;
    ++memory->regions;
    const Access::Terms terms{.bytes = MutableBytes(bytes).subspan(100, 200), .access = rights};
    auto made = std::make_shared<Access>(std::move(memory), terms, domain->new_key());
    domain->add_access(made->key(), made);
    return made;
  }
  int landing(Access& access, EndpointId endpoint) {
    const Lock guard(domain->mutex());
    return access.landing(endpoint, landed);
  }
  void revoke(Access& access) {
    const Lock guard(domain->mutex());
    access.revoke();
  }

  Landing landed;
};

TEST_F(Accesses, AreForOneConnectionOrForAGroupOrForAll) {
  const Connection one(domain), other(domain);
  const auto memory = this->memory(STM_REMOTE_READ);
  const Access all(memory, {}, 10), only(memory, {.bytes = {}, .only = &one}, 11),
      group(memory, {.bytes = {}, .group = 7}, 12);
  EXPECT_TRUE(all.permits(other, 0));
  EXPECT_TRUE(all.permits(other, 7));
  EXPECT_TRUE(only.permits(one, 0));
  EXPECT_FALSE(only.permits(other, 0));
  EXPECT_TRUE(group.permits(other, 7));
  EXPECT_FALSE(group.permits(other, 8));
  EXPECT_FALSE(group.permits(other, 0)) << "a connection without a group";
}

TEST_F(Accesses, EachEndpointHasOneMxOfItsOwn) {
  const auto first = endpoint(), second = endpoint();
  const auto memory = bound(STM_REMOTE_WRITE);
  const auto access = grant(memory, STM_REMOTE_WRITE);
  const auto before = link->count(Kind::kAllocMx);
  ASSERT_EQ(landing(*access, first), 0);
  const auto mx = landed.mx;
  EXPECT_EQ(landed.length, 200U);
  EXPECT_EQ(landed.at, memory->at(bytes.data() + 100));
  ASSERT_EQ(landing(*access, first), 0);
  EXPECT_EQ(landed.mx, mx);
  ASSERT_EQ(landing(*access, second), 0);
  EXPECT_NE(landed.mx, mx);
  EXPECT_EQ(link->count(Kind::kAllocMx) - before, 2U);
  EXPECT_TRUE(memory->exposed) << "frames may read it that no operation waits for";
  revoke(*access);
}

TEST_F(Accesses, ThePeerGetsNoMoreThanTheProgramPermits) {
  const auto to = endpoint();
  const auto memory = bound(STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC);
  const std::pair<unsigned, unsigned> cases[] = {
      {STM_REMOTE_READ, permit::kGet},
      {STM_REMOTE_WRITE, permit::kData},
      {STM_REMOTE_ATOMIC, permit::kFetchOp},
      {STM_REMOTE_READ | STM_REMOTE_WRITE, permit::kGet | permit::kData},
  };
  for (const auto& [rights, permits] : cases) {
    const auto access = grant(memory, rights);
    ASSERT_EQ(landing(*access, to), 0);
    const auto& request = link->requests.back();
    EXPECT_EQ(request.kind, Kind::kAllocMx);
    EXPECT_EQ(request.permissions, permits);
    EXPECT_EQ(request.region, memory->receive_region(to));
    revoke(*access);
  }
}

TEST_F(Accesses, WhatTheLinkRefusesIsAskedForAgainLater) {
  const auto to = endpoint();
  const auto access = grant(bound(STM_REMOTE_WRITE), STM_REMOTE_WRITE);
  link->refuse = [](const auto&) { return -ENOSPC; };
  EXPECT_EQ(landing(*access, to), -ENOSPC);
  link->refuse = {};
  EXPECT_EQ(landing(*access, to), 0);
  EXPECT_NE(landed.mx, 0U);
  revoke(*access);
}

TEST_F(Accesses, MemoryThatIsNotAtTheEndpointIsNotAccessed) {
  const auto access = grant(bound(STM_REMOTE_WRITE), STM_REMOTE_WRITE);
  EXPECT_EQ(landing(*access, 77), -EACCES);
  revoke(*access);
}

TEST_F(Accesses, OneThatIsRevokedGivesBackWhatItHadOnce) {
  const EndpointId ends[] = {endpoint(), endpoint()};
  const auto memory = bound(STM_REMOTE_WRITE);
  const auto access = grant(memory, STM_REMOTE_WRITE);
  std::vector<std::uint32_t> mxs;
  for (const auto each : ends) {
    ASSERT_EQ(landing(*access, each), 0);
    mxs.push_back(landed.mx);
  }
  for (int i = 0; i < 2; ++i) revoke(*access);
  const auto freed = link->sent(Kind::kFreeMx);
  ASSERT_EQ(freed.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(freed[i].endpoint, ends[i]);
    EXPECT_EQ(freed[i].mx, mxs[i]);
  }
  EXPECT_EQ(memory->uses, 0U);
  EXPECT_EQ(memory->regions, 0U);
  {
    const Lock guard(domain->mutex());
    EXPECT_EQ(domain->find_access(access->key()), nullptr);
  }
  EXPECT_EQ(landing(*access, ends[0]), -EACCES);
}

constexpr Time kPresent = 1'000 * kSecond;

TEST(WrongKeysOfADomain, AreToldAtOnceAndThenSoManyASecond) {
  WrongKeys keys;
  for (unsigned i = 0; i < WrongKeys::kAtOnce; ++i) ASSERT_EQ(keys.next(kPresent), kPresent);
  Time last = kPresent;
  for (unsigned i = 1; i < WrongKeys::kASecond; ++i) {
    last = keys.next(kPresent);
    ASSERT_EQ(last, kPresent + i * (kSecond / WrongKeys::kASecond));
  }
  // Nobody waits longer than that, and those before have not made it longer for ever.
  for (unsigned i = 0; i < 10 * WrongKeys::kAtOnce; ++i)
    ASSERT_LE(keys.next(kPresent), kPresent + WrongKeys::kLongest);
  EXPECT_LE(keys.next(kPresent + kSecond), kPresent + 2 * kSecond);
  const auto later = kPresent + 10 * kSecond;
  for (unsigned i = 0; i < WrongKeys::kAtOnce; ++i) ASSERT_EQ(keys.next(later), later);
  EXPECT_GT(keys.next(later), later);
}

}  // namespace
}  // namespace stp::managed

namespace stp::test {
namespace {

class GuessedKeys : public ManagedApi {
 protected:
  // The next wrong key is told that much later than now, if the peer names it at once.
  void use_up(Time later) {
    const auto domain =
        client::find<managed::Domain>(reinterpret_cast<client::Handle>(server.domain));
    const Lock guard(domain->mutex());
    const auto now = domain->now();
    for (unsigned i = 0; i < 2 * managed::WrongKeys::kAtOnce; ++i)
      if (domain->wrong_keys().next(now) >= now + later) return;
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
}  // namespace stp::test
