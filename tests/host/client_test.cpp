// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/client.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/host/eventually.h"
#include "tests/host/usage.h"

namespace stp::host {
namespace {

long wake_on(std::atomic<std::uint32_t>& word, int most) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, most, nullptr,
                   nullptr, 0);
}

// Moves the sleepers to another word of the page, which costs none of them its sleep.
long asleep_on(std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& other) {
  const auto moved =
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_REQUEUE, 0,
                std::numeric_limits<int>::max(), reinterpret_cast<std::uint32_t*>(&other), 0);
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&other), FUTEX_REQUEUE, 0,
            std::numeric_limits<int>::max(), reinterpret_cast<std::uint32_t*>(&word), 0);
  return moved;
}

// A program may let any number of threads sleep on its page.
TEST(Client, AnEventWakesOneSleeperWhateverTheirNumber) {
  constexpr int kSleepers = 20;
  Client client;
  client.page_memory = ipc::SharedMemory::lend("test", sizeof(ipc::ClientPage));
  ASSERT_TRUE(client.page_memory);
  auto& page = client.page();
  page.sleepers = kSleepers;
  std::atomic<int> awake{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kSleepers; ++i)
    threads.emplace_back([&] {
      const timespec most{.tv_sec = 30, .tv_nsec = 0};
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&page.events), FUTEX_WAIT, 0, &most,
                nullptr, 0);
      ++awake;
    });
  EXPECT_TRUE(eventually([&] { return asleep_on(page.events, page.accepts) == kSleepers; }));
  client.wake();
  EXPECT_TRUE(eventually([&] { return awake == 1; }));
  EXPECT_EQ(wake_on(page.events, std::numeric_limits<int>::max()), kSleepers - 1);
  for (auto& thread : threads) thread.join();
}

std::unique_ptr<Channel> spare() {
  return std::make_unique<Channel>();
}

TEST(ChannelTable, GivesEachChannelANumberOfItsOwn) {
  ChannelTable table;
  std::set<Bell> numbers;
  for (int i = 0; i < 100; ++i) numbers.insert(table.add(spare()));
  EXPECT_EQ(numbers.size(), 100U);
  EXPECT_EQ(*numbers.rbegin(), 99U);
  EXPECT_EQ(table.numbers(), 100U);
  EXPECT_EQ(table.count(), 100U);
}

// The client's page has a bit for each number, so numbers must not grow for ever.
TEST(ChannelTable, UsesTheNumberOfARemovedChannelAgain) {
  ChannelTable table;
  for (int i = 0; i < 3; ++i) table.add(spare());
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_NE(table.remove(1), nullptr);
    EXPECT_EQ(table.at(1), nullptr);
    EXPECT_EQ(table.count(), 2U);
    EXPECT_EQ(table.add(spare()), 1U);
  }
  EXPECT_EQ(table.numbers(), 3U);
}

TEST(ChannelTable, ANumberBeyondTheLastOneIsNoChannel) {
  ChannelTable table;
  EXPECT_EQ(table.at(0), nullptr);
  table.add(spare());
  EXPECT_NE(table.at(0), nullptr);
  EXPECT_EQ(table.at(1), nullptr);
  EXPECT_EQ(table.at(~Bell{0}), nullptr);
}

TEST(ChannelTable, FindsTheChannelOfAConnectionUntilItEnds) {
  ChannelTable table;
  table.add(spare());
  const auto number = table.add(spare());
  constexpr VcId kVc = 77;
  EXPECT_EQ(table.of(kVc), nullptr);
  table.put_to_use(kVc, number);
  ASSERT_EQ(table.of(kVc), table.at(number));
  EXPECT_EQ(table.at(number)->vc, kVc);
  EXPECT_EQ(table.of(kVc + 1), nullptr);
  table.end_use(kVc);
  EXPECT_EQ(table.of(kVc), nullptr);
  EXPECT_NE(table.at(number), nullptr);  // until it is removed
  table.remove(number);
  EXPECT_EQ(table.at(number), nullptr);
}

TEST(ChannelTable, WhatAChannelTookGoesBackWhenItIsRemoved) {
  ChannelTable table;
  ProgramUse use;
  auto channel = spare();
  channel->one = {use.connections, 1};
  channel->counted_bytes = {use.queue_bytes, 4'096};
  const auto number = table.add(std::move(channel));
  EXPECT_EQ(use.connections, 1U);
  table.remove(number);
  EXPECT_EQ(use.connections, 0U);
  EXPECT_EQ(use.queue_bytes, 0U);
}

constexpr RegionId kRegion = 5, kOtherRegion = 6;
constexpr VcId kVc = 8, kOtherVc = 9;

class MxRecordsTest : public testing::Test {
 protected:
  void add(std::uint16_t mx, RegionId region, VcId vc = kNoneId) {
    records.add(mx, {.region = region, .vc = vc, .held = {}, .one = {use.mxs, 1}});
  }

  ProgramUse use;
  MxRecords records;
};

TEST_F(MxRecordsTest, AnMxIsOfItsRegionAndOfTheConnectionThatAloneMayUseIt) {
  add(1, kRegion, kVc);
  add(2, kRegion);
  add(3, kOtherRegion, kVc);
  EXPECT_EQ(records.count_of_region(kRegion), 2U);
  EXPECT_EQ(records.count_of_region(kOtherRegion), 1U);
  EXPECT_EQ(records.count_of_connection(kVc), 2U);
  EXPECT_EQ(records.count_of_connection(kOtherVc), 0U);
  // An Mx for all connections is not one of the connection "none".
  EXPECT_EQ(records.count_of_connection(kNoneId), 0U);
}

TEST_F(MxRecordsTest, ARemovedOneIsCountedNowhere) {
  add(1, kRegion, kVc);
  EXPECT_EQ(use.mxs, 1U);
  records.remove(1);
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(use.mxs, 0U);
  EXPECT_EQ(records.count_of_region(kRegion), 0U);
  EXPECT_EQ(records.count_of_connection(kVc), 0U);
  records.remove(1);  // no harm
}

TEST_F(MxRecordsTest, TheMxOfARegionGoOneByOne) {
  for (std::uint16_t mx = 0; mx < 10; ++mx) add(mx, kRegion, mx % 2 == 0 ? kVc : kNoneId);
  add(10, kOtherRegion, kVc);
  for (std::size_t left = 10; left > 0; --left) {
    EXPECT_EQ(records.count_of_region(kRegion), left);
    EXPECT_EQ(use.mxs, left + 1);
    EXPECT_TRUE(records.remove_one_of_region(kRegion));
  }
  EXPECT_FALSE(records.remove_one_of_region(kRegion));
  EXPECT_EQ(records.count_of_connection(kVc), 1U);
  EXPECT_EQ(records.count_of_region(kOtherRegion), 1U);
}

TEST_F(MxRecordsTest, TheMxOfAConnectionGoOneByOne) {
  add(1, kRegion, kVc);
  add(2, kOtherRegion, kVc);
  add(3, kRegion, kOtherVc);
  EXPECT_TRUE(records.remove_one_of_connection(kVc));
  EXPECT_TRUE(records.remove_one_of_connection(kVc));
  EXPECT_FALSE(records.remove_one_of_connection(kVc));
  EXPECT_EQ(records.count_of_region(kRegion), 1U);
  EXPECT_EQ(records.count_of_connection(kOtherVc), 1U);
}

// The Node gives the number of an ended Mx to another region before its record is removed.
TEST_F(MxRecordsTest, TheRecordOfAnEndedMxIsReplacedAndNotFoundUnderItsFirstRegion) {
  add(1, kRegion, kVc);
  add(1, kOtherRegion, kOtherVc);
  EXPECT_EQ(use.mxs, 1U);
  EXPECT_FALSE(records.remove_one_of_region(kRegion));
  EXPECT_FALSE(records.remove_one_of_connection(kVc));
  EXPECT_EQ(records.count_of_region(kOtherRegion), 1U);
  EXPECT_EQ(records.count_of_connection(kOtherVc), 1U);
}

}  // namespace

namespace {

using Place = ClientTable::Place;

class ClientTableTest : public testing::Test {
 protected:
  static ipc::ClientIdentity of(uid_t uid) { return {.pid = 1, .uid = uid, .groups = {}}; }
  Client* add(uid_t uid, Place place = Place::kOwn) { return table.add(of(uid), place, why); }
  std::uint64_t used(Resource resource) const { return host::used(allow.budgets(), resource); }

  static constexpr uid_t kUser = 4'711;
  std::string why;
  Allowances allow{nullptr, 0, 1};
  ClientTable table{allow};
};

TEST_F(ClientTableTest, EachClientHasAnIdAndAPageOfItsOwn) {
  std::set<ClientId> ids;
  std::set<ipc::ClientPage*> pages;
  for (int i = 0; i < 50; ++i) {
    auto* const client = table.add(false);
    ASSERT_NE(client, nullptr);
    EXPECT_NE(client->id, 0U);
    EXPECT_EQ(table.find(client->id), client);
    EXPECT_EQ(client->page().magic, ipc::kClientPageMagic);
    ids.insert(client->id);
    pages.insert(&client->page());
  }
  EXPECT_EQ(ids.size(), 50U);
  EXPECT_EQ(pages.size(), 50U);
  EXPECT_EQ(table.size(), 50U);
  EXPECT_EQ(table.find(0), nullptr);
}

TEST_F(ClientTableTest, PagesOfThoseWhoAreGoneAreUsedAgainUnlessSomebodyHasThem) {
  auto* client = add(kUser);
  client->page().sleepers = 7;
  const std::weak_ptr<ipc::SharedMemory> page = client->page_memory;
  const auto leave = [&] {
    client->leaving = true;
    table.forget_if_empty(*client);
    client = add(kUser);
  };
  leave();
  ASSERT_FALSE(page.expired());
  EXPECT_EQ(client->page_memory, page.lock());
  EXPECT_EQ(client->page().sleepers, 0U);
  EXPECT_EQ(client->page().magic, ipc::kClientPageMagic);
  const auto held = client->page_memory;
  leave();
  EXPECT_NE(client->page_memory, held);
}

TEST_F(ClientTableTest, OnlyRootIsPrivileged) {
  EXPECT_TRUE(add(0)->privileged);
  EXPECT_FALSE(add(kUser)->privileged);
}

TEST_F(ClientTableTest, AProgramPaysForItsPlaceItsMappingAndItsFiles) {
  auto* const client = add(kUser);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(used(Resource::kClients), 1U);
  EXPECT_EQ(used(Resource::kMappings), 1U);
  EXPECT_EQ(used(Resource::kFiles), 5U);
  client->leaving = true;
  table.forget_if_empty(*client);
  EXPECT_EQ(table.size(), 0U);
  for (const auto resource : {Resource::kClients, Resource::kMappings, Resource::kFiles})
    EXPECT_EQ(used(resource), 0U);
}

TEST_F(ClientTableTest, AProgramKnownToAnotherShardPaysForItsPageAndItsBellOnly) {
  ASSERT_NE(add(kUser, Place::kKnown), nullptr);
  EXPECT_EQ(used(Resource::kClients), 0U);
  EXPECT_EQ(used(Resource::kMappings), 1U);
  EXPECT_EQ(used(Resource::kFiles), 3U);
}

TEST_F(ClientTableTest, APlaceForOperatorsCostsNothing) {
  ASSERT_NE(add(kUser, Place::kOperator), nullptr);
  for (const auto resource : {Resource::kClients, Resource::kMappings, Resource::kFiles})
    EXPECT_EQ(used(resource), 0U);
}

TEST_F(ClientTableTest, AUserWithItsShareOfPlacesIsRefusedWithAReason) {
  Quotas quotas;
  quotas.clients = 4;
  allow.set_quotas(quotas);
  EXPECT_NE(add(kUser), nullptr);
  EXPECT_NE(add(kUser), nullptr);
  EXPECT_EQ(add(kUser), nullptr);
  EXPECT_EQ(errno, EDQUOT);
  EXPECT_NE(why.find("--max-clients"), std::string::npos) << why;
  EXPECT_NE(add(kUser + 1), nullptr);
  EXPECT_EQ(table.size(), 3U);
}

// The Node may still use memory of the client.
TEST_F(ClientTableTest, AClientStaysWhileSomethingOfItIsLeft) {
  auto* const client = table.add(false);
  const auto id = client->id;
  table.forget_if_empty(*client);
  EXPECT_NE(table.find(id), nullptr);  // it does not leave
  client->leaving = true;
  client->mxs.add(1, {.region = 5, .vc = kNoneId, .held = {}, .one = {}});
  table.forget_if_empty(*client);
  EXPECT_NE(table.find(id), nullptr);
  client->mxs.remove(1);
  table.forget_if_empty(*client);
  EXPECT_EQ(table.find(id), nullptr);
}

TEST_F(ClientTableTest, TheUserPaysForWhatTheClientMakes) {
  auto* const client = add(kUser);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->identity.uid, kUser);
  Reservation region;
  ASSERT_EQ(allow.reserve(client->payer, Resource::kRegions, 1, region), 0);
  const auto usage = allow.budgets().after(kUser - 1);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->uid, kUser);
  EXPECT_EQ(usage->used[static_cast<std::size_t>(Resource::kRegions)], 1U);
}

class WindowAccountsTest : public testing::Test {
 protected:
  WindowAccountsTest() {
    Quotas quotas;
    quotas.totals[Resource::kWindowBytes] = kTotal;
    allow.set_quotas(quotas);
    std::string why;
    client = table.add({.pid = 1, .uid = 4'711, .groups = {}}, ClientTable::Place::kOwn, why);
  }
  std::uint64_t used() const { return host::used(allow.budgets(), Resource::kWindowBytes); }

  static constexpr std::uint64_t kTotal = 1'000;
  Allowances allow{nullptr, 0, 1};
  ClientTable table{allow};
  Client* client = nullptr;
  WindowAccounts windows{table};
};

TEST_F(WindowAccountsTest, TheUserOfTheClientPays) {
  EXPECT_TRUE(windows.hold(client->id, 0, 100));
  EXPECT_TRUE(windows.hold(client->id, 100, 300));
  EXPECT_EQ(used(), 300U);
  EXPECT_TRUE(windows.hold(client->id, 300, 50));
  EXPECT_EQ(used(), 50U);
  EXPECT_TRUE(windows.hold(client->id, 50, 0));
  EXPECT_EQ(used(), 0U);
}

TEST_F(WindowAccountsTest, RefusesMoreThanTheUsersShareAndKeepsWhatItHolds) {
  EXPECT_TRUE(windows.hold(client->id, 0, kTotal / 2));
  EXPECT_FALSE(windows.hold(client->id, kTotal / 2, kTotal / 2 + 1));
  EXPECT_EQ(used(), kTotal / 2);
}

TEST_F(WindowAccountsTest, APartMayOutliveItsClientButNotGrow) {
  const auto id = client->id;
  EXPECT_TRUE(windows.hold(id, 0, 100));
  client->leaving = true;
  table.forget_if_empty(*client);
  ASSERT_EQ(table.find(id), nullptr);
  EXPECT_FALSE(windows.hold(id, 100, 200));
  EXPECT_EQ(used(), 100U);
  EXPECT_TRUE(windows.hold(id, 100, 0));
  EXPECT_EQ(used(), 0U);
}

}  // namespace
}  // namespace stp::host
