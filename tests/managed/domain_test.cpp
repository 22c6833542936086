// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/domain.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <future>
#include <optional>
#include <set>

#include "libst/managed/memory.h"
#include "libst/managed/queue.h"
#include "libst/managed/session.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

class MappingGates : public testing::Test {
 protected:
  // Whether a thread of a domain could go on.
  static bool open(Mutex& domain) {
    return std::async(std::launch::async, [&domain] { return is_free(domain); }).get();
  }
  static bool is_free(Mutex& domain) {
    const bool locked = domain.try_lock();
    if (locked) domain.unlock();
    return locked;
  }

  Mutex one{LockRank::kDomain}, two{LockRank::kDomain}, three{LockRank::kDomain};
};

TEST_F(MappingGates, ThatAreShutHoldEachDomainAndNoOther) {
  const MappingGateMember first(one), second(two);
  {
    const MappingGateShut shut;
    EXPECT_FALSE(open(one));
    EXPECT_FALSE(open(two));
    EXPECT_TRUE(open(three));
  }
  EXPECT_TRUE(open(one));
  EXPECT_TRUE(open(two));
}

TEST_F(MappingGates, AreShutForWhoeverIsThereThen) {
  std::optional<MappingGateMember> first(one), second(two), third(three);
  second.reset();  // neither the newest nor the oldest
  {
    const MappingGateShut shut;
    EXPECT_FALSE(open(one));
    EXPECT_TRUE(open(two));
    EXPECT_FALSE(open(three));
  }
  third.reset();
  first.reset();
  const MappingGateShut shut;
  for (auto* each : {&one, &two, &three}) EXPECT_TRUE(open(*each));
}

TEST_F(MappingGates, AreOpenAfterAForkInBothProcesses) {
  const MappingGateMember first(one), second(two);
  const auto child = ::fork();
  if (child == 0) {
    const bool both = is_free(one) && is_free(two);
    bool joins = false;
    if (both) {
      const MappingGateMember third(three);  // not if the gate itself were locked
      joins = true;
    }
    ::_exit(both && joins ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  EXPECT_TRUE(open(one));
  EXPECT_TRUE(open(two));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// What a thread touches while it waits must be on no page that somebody replaces.
TEST_F(MappingGates, ObjectsOfThePageAllocatorShareNoPage) {
  struct Small {
    char byte = 0;
  };
  PageAllocator<Small> pages;
  Small* made[3];
  for (auto*& each : made) {
    each = pages.allocate(1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each) % 4096, 0U);
    each->byte = 1;
  }
  EXPECT_NE(made[0], made[1]);
  EXPECT_NE(made[1], made[2]);
  for (auto* each : made) pages.deallocate(each, 1);
  EXPECT_THROW(pages.allocate(SIZE_MAX / 2), std::bad_alloc);
}

class Domains : public OnScriptedLink {
 protected:
  // A handle of `object`, which is of the domain.
  template <typename T>
  Handle publish(const std::shared_ptr<T>& object) const {
    const auto handle = client::HandleTable::instance().add(T::kKind, object);
    const Lock guard(domain->mutex());
    domain->adopt(handle, T::kKind);
    return handle;
  }
  Memory* find(Handle handle) const {
    const Lock guard(domain->mutex());
    return domain->find_memory(handle);
  }
};

TEST_F(Domains, ANewEndpointGetsAllMemoryThatThereIs) {
  const auto memory = bound(STM_LOCAL_WRITE);
  ASSERT_TRUE(memory);
  EXPECT_EQ(link->count(Kind::kMap), 0U);
  for (const auto each : {endpoint(), endpoint()}) EXPECT_NE(memory->receive_region(each), kNoneId);
  const Lock control(domain->control_mutex());
  EXPECT_EQ(domain->endpoints().size(), 2U);
}

TEST_F(Domains, AnEndpointThatCannotHaveAllMemoryIsClosed) {
  const auto memory = bound(STM_LOCAL_WRITE);
  link->refuse = [](const auto& request) { return request.kind == Kind::kMap ? -ENOSPC : 0; };
  EndpointId made = kNoneId;
  {
    const Lock control(domain->control_mutex());
    EXPECT_EQ(domain->open_endpoint(made), -ENOSPC);
  }
  const auto closed = link->sent(Kind::kCloseEndpoint);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].endpoint, made);
  const Lock control(domain->control_mutex());
  EXPECT_TRUE(domain->endpoints().empty());
}

TEST_F(Domains, AnEndpointThatIsIdleIsTakenBeforeANewOne) {
  const Lock control(domain->control_mutex());
  EndpointId first = kNoneId, second = kNoneId, third = kNoneId;
  ASSERT_EQ(domain->take_endpoint(first), 0);
  ASSERT_EQ(domain->take_endpoint(second), 0);
  EXPECT_NE(first, second);
  domain->give_back_endpoint(first);
  ASSERT_EQ(domain->take_endpoint(third), 0);
  EXPECT_EQ(third, first);
  EXPECT_EQ(link->count(Kind::kOpenEndpoint), 2U);
}

TEST_F(Domains, KeysOfRegionsAreNoneOfTheLibraryAndNoTwoAreAlike) {
  const Lock guard(domain->mutex());
  std::set<std::uint32_t> keys;
  const auto memory = this->memory(STM_REMOTE_READ);
  for (int i = 0; i < 1'000; ++i) {
    const auto key = domain->new_key();
    EXPECT_GT(key, kEagerKey);
    EXPECT_TRUE(keys.insert(key).second);
    domain->add_access(key, std::make_shared<Access>(memory, Access::Terms{}, key));
  }
  EXPECT_EQ(domain->find_access(*keys.begin())->key(), *keys.begin());
  domain->remove_access(*keys.begin());
  EXPECT_EQ(domain->find_access(*keys.begin()), nullptr);
}

TEST_F(Domains, MemoryIsFoundByItsHandleAsLongAsThatIsValid) {
  const auto first = memory(STM_LOCAL_READ), second = memory(STM_LOCAL_READ);
  const auto one = publish(first), two = publish(second);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(find(one), first.get());
    EXPECT_EQ(find(one), first.get()) << "the one that was found last";
    EXPECT_EQ(find(two), second.get());
  }
  client::retire<Memory>(two);
  {
    const Lock guard(domain->mutex());
    domain->forget(two);
  }
  EXPECT_EQ(find(two), nullptr);
  EXPECT_EQ(find(one), first.get());
  EXPECT_EQ(find(0), nullptr);
}

TEST_F(Domains, MemoryOfAnotherIsNotFound) {
  const auto other = open(link);
  const auto theirs = std::make_shared<Memory>(other, MutableBytes(bytes), STM_LOCAL_READ);
  const auto handle = client::HandleTable::instance().add(Memory::kKind, theirs);
  EXPECT_EQ(find(handle), nullptr);
  client::retire<Memory>(handle);
}

TEST_F(Domains, ThatAreClosedGiveBackAllAndTheirHandlesAreInvalid) {
  ASSERT_EQ(domain->open_first_endpoint(), 0);
  endpoint();
  const auto held = bound(STM_LOCAL_WRITE);
  const auto memory = publish(held);
  const auto queue = std::make_shared<Queue>(domain, 4);
  const auto handle = publish(queue);
  domain->close();
  EXPECT_EQ(link->count(Kind::kUnmap), link->count(Kind::kMap));
  EXPECT_EQ(link->count(Kind::kCloseEndpoint), 2U);
  EXPECT_FALSE(client::find<Memory>(memory));
  EXPECT_FALSE(client::find<Queue>(handle));
  EXPECT_TRUE(queue->destroyed());
  const auto requests = link->requests.size();
  domain->close();
  EXPECT_EQ(link->requests.size(), requests) << "once only";
  EXPECT_EQ(domain->provide_staging(), -ECANCELED);
}

}  // namespace
}  // namespace stp::managed
