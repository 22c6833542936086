// SPDX-License-Identifier: BSD-3-Clause
// A daemon that has as many clients as it may: programs are turned away, its operators are not.
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "libst/os/file_limit.h"
#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_socket.h"

namespace stp::stpd {
namespace {

class FullServer : public testing::Test, protected ServedSocket {
 protected:
  FullServer() {
    open_directory();
    start();
  }
  // A client of a user whom nobody has named an administrator.
  std::unique_ptr<RawClient> stranger() {
    auto client = client_of(::getpwnam("nobody")->pw_uid);
    EXPECT_TRUE(client && client->connected);
    return client;
  }
  std::unique_ptr<RawClient> program() {
    auto client = std::make_unique<RawClient>(path);
    EXPECT_EQ(client->ask(ipc::RequestKind::kHello), 0);
    return client;
  }
  std::unique_ptr<RawClient> operating() {
    auto client = std::make_unique<RawClient>(path);
    EXPECT_EQ(client->ask(ipc::RequestKind::kAdminLink), 0);
    return client;
  }
};

TEST_F(FullServer, TurnsFurtherProgramsAwayUntilOneGoes) {
  if (os::raise_file_limit() < 10 * host::Quotas{}.clients + 100)
    GTEST_SKIP() << "this user may not have as many files open (ulimit -Hn)";
  std::vector<std::unique_ptr<RawClient>> clients;
  for (std::size_t i = 0; i < host::Quotas{}.clients; ++i) clients.push_back(program());
  RawClient one_more(path);
  EXPECT_EQ(one_more.ask(ipc::RequestKind::kHello), -EDQUOT);
  EXPECT_TRUE(one_more.disconnected());
  EXPECT_EQ(server.counts().refused, 1U);
  clients.pop_back();
  ASSERT_TRUE(clients_become(host::Quotas{}.clients - 1));
  RawClient again(path);
  EXPECT_EQ(again.ask(ipc::RequestKind::kHello), 0);
}

TEST_F(FullServer, TheOperatorChoosesHowManyClientsThereMayBe) {
  server.set_quotas({.clients = 1});
  const auto first = program();
  RawClient second(path);
  EXPECT_EQ(second.ask(ipc::RequestKind::kHello), -EDQUOT);
  EXPECT_NE(std::string(second.reply.text).find("--max-clients"), std::string::npos);
  EXPECT_TRUE(second.disconnected());
  EXPECT_EQ(first->ask(ipc::RequestKind::kHello), 0);
}

TEST_F(FullServer, LetsAnAdministratorWatch) {
  server.set_quotas({.clients = 1});
  const auto first = program();
  const auto administrator = operating();
  EXPECT_EQ(administrator->reply.admin.clients, 2U);
  EXPECT_EQ(administrator->ask(ipc::RequestKind::kStats), 0);
  EXPECT_EQ(administrator->ask(ipc::RequestKind::kTraceStatus), -EOPNOTSUPP);
  EXPECT_EQ(server.counts().refused, 0U);
}

TEST_F(FullServer, GivesAnAdministratorNoPlaceForPrograms) {
  server.set_quotas({.clients = 1});
  const auto first = program();
  const auto administrator = operating();
  EXPECT_EQ(administrator->ask(ipc::RequestKind::kOpenEndpoint), -EDQUOT);
  EXPECT_TRUE(administrator->disconnected());
  EXPECT_EQ(server.counts().refused, 1U);
  ASSERT_TRUE(clients_become(1));
}

TEST_F(FullServer, PlacesOfOperatorsAreNotThoseOfPrograms) {
  server.set_quotas({.clients = 1});
  auto first = program();
  const auto administrator = operating();
  first.reset();
  ASSERT_TRUE(clients_become(1));
  const auto next = program();
  EXPECT_EQ(administrator->ask(ipc::RequestKind::kStats), 0);
}

TEST_F(FullServer, TheOperatorWhoWasSilentLongestMakesRoomForAnother) {
  server.set_quotas({.clients = 1});
  const auto first = program();
  std::vector<std::unique_ptr<RawClient>> operators;
  for (std::size_t i = 0; i < host::limits::kOperatorPlaces; ++i) operators.push_back(operating());
  ASSERT_EQ(operators[0]->ask(ipc::RequestKind::kStats), 0);
  const auto one_more = operating();
  EXPECT_TRUE(operators[1]->disconnected());
  EXPECT_EQ(operators[0]->ask(ipc::RequestKind::kStats), 0);
  EXPECT_EQ(first->ask(ipc::RequestKind::kHello), 0);
  EXPECT_TRUE(clients_become(1 + host::limits::kOperatorPlaces));
}

TEST_F(FullServer, LetsNobodyElseWatch) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  server.set_quotas({.clients = 1});
  const auto first = stranger();
  ASSERT_EQ(first->ask(ipc::RequestKind::kHello), 0);
  const auto second = stranger();
  EXPECT_EQ(second->ask(ipc::RequestKind::kHello), -EDQUOT);
  EXPECT_EQ(std::string(second->reply.text),
            "1 clients are connected already: raise --max-clients");
  EXPECT_TRUE(second->disconnected());
  EXPECT_EQ(server.counts().refused, 1U);
}

}  // namespace
}  // namespace stp::stpd
