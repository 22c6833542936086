// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/client_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

namespace stp::service {
namespace {

using Place = ClientTable::Place;

class ClientTableTest : public testing::Test {
 protected:
  static ClientIdentity of(uid_t uid) { return {.pid = 1, .uid = uid, .groups = {}}; }
  Client* add(uid_t uid, Place place = Place::kOwn) { return table.add(of(uid), place, why); }
  std::uint64_t used(Resource resource) const { return allow.budgets().used(resource); }

  static constexpr uid_t kUser = 4'711;
  std::string why;
  Allowances allow{nullptr, 0, 1};
  ClientTable table{allow};
};

TEST_F(ClientTableTest, EachClientHasAnIdAndAPageOfItsOwn) {
  std::set<ClientId> ids;
  std::set<ClientPage*> pages;
  for (int i = 0; i < 50; ++i) {
    auto* const client = table.add(false);
    ASSERT_NE(client, nullptr);
    EXPECT_NE(client->id, 0U);
    EXPECT_EQ(table.find(client->id), client);
    EXPECT_EQ(client->page().magic, kClientPageMagic);
    ids.insert(client->id);
    pages.insert(&client->page());
  }
  EXPECT_EQ(ids.size(), 50U);
  EXPECT_EQ(pages.size(), 50U);
  EXPECT_EQ(table.size(), 50U);
  EXPECT_EQ(table.find(0), nullptr);
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
  EXPECT_EQ(used(Resource::kFiles), 4U);
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
  EXPECT_EQ(used(Resource::kFiles), 2U);
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
  client->mxs.add(1, {.region = 5, .vc = kNoneId, .place = {}, .one = {}});
  table.forget_if_empty(*client);
  EXPECT_NE(table.find(id), nullptr);
  client->mxs.remove(1);
  table.forget_if_empty(*client);
  EXPECT_EQ(table.find(id), nullptr);
}

TEST_F(ClientTableTest, ANewUserPaysForWhatTheClientMakesLater) {
  auto* const client = table.add(false);
  table.identify(*client, of(kUser));
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
  std::uint64_t used() const { return allow.budgets().used(Resource::kWindowBytes); }

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
}  // namespace stp::service
