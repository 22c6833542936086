// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/window_accounts.h"

#include <gtest/gtest.h>

#include <string>

namespace stp::service {
namespace {

class WindowAccountsTest : public testing::Test {
 protected:
  WindowAccountsTest() {
    Quotas quotas;
    quotas.total_window_bytes = kTotal;
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
