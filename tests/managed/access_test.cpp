// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/access.h"

#include "libst/managed/connection.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

class Accesses : public OnScriptedLink {
 protected:
  std::shared_ptr<Access> grant(std::shared_ptr<Memory> memory, unsigned rights) {
    const std::lock_guard guard(domain->mutex());
    ++memory->uses;
    ++memory->regions;
    const Access::Terms terms{.bytes = MutableBytes(bytes).subspan(100, 200), .access = rights};
    auto made = std::make_shared<Access>(std::move(memory), terms, domain->new_key());
    domain->add_access(made->key(), made);
    return made;
  }
  int landing(Access& access, EndpointId endpoint) {
    const std::lock_guard guard(domain->mutex());
    return access.landing(endpoint, landed);
  }
  void revoke(Access& access) {
    const std::lock_guard guard(domain->mutex());
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
  EXPECT_EQ(domain->find_access(access->key()), nullptr);
  EXPECT_EQ(landing(*access, ends[0]), -EACCES);
}

}  // namespace
}  // namespace stp::managed
