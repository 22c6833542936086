// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/mapping_gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <future>
#include <optional>

namespace stp::managed {
namespace {

class MappingGates : public testing::Test {
 protected:
  // Whether a thread of a domain could go on.
  static bool open(std::mutex& domain) {
    return std::async(std::launch::async,
                      [&domain] {
                        const bool locked = domain.try_lock();
                        if (locked) domain.unlock();
                        return locked;
                      })
        .get();
  }

  std::mutex one, two, three;
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
    const bool both = one.try_lock() && two.try_lock();
    bool joins = false;
    if (both) {
      one.unlock();
      two.unlock();
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

}  // namespace
}  // namespace stp::managed
