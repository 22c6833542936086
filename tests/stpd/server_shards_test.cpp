// SPDX-License-Identifier: BSD-3-Clause
// A daemon's link of several shards: programs on one or several of them, of one user and of
// several, that behave and that do not.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "libst/ipc/requests.h"
#include "tests/host/usage.h"
#include "tests/stpd/hostile_client.h"
#include "tests/stpd/served_pair.h"
#include "tools/stpd/link_shards.h"
#include "tools/stpd/server.h"

namespace stp::stpd {
namespace {

constexpr std::uint32_t kShards = 3;

std::vector<std::unique_ptr<port::Port>> ports() {
  port::LinkConfig link;
  std::string error;
  EXPECT_TRUE(port::parse_link("loop,queues=3", link, error)) << error;
  port::OpenError why;
  auto opened = port::Port::open_shards(link, why);
  EXPECT_EQ(opened.size(), kShards) << why.text;
  return opened;
}

class ServerShards : public testing::Test {
 protected:
  ServerShards() {
    ::chmod(directory.path().c_str(), 0755);  // other users may reach the socket
    EXPECT_EQ(server.start(), 0);
    shards.start();
  }
  ~ServerShards() override {
    server.stop();
    shards.stop();
  }
  void set_quotas(const host::Quotas& quotas) {
    server.set_quotas(quotas);
    shards.set_quotas(quotas);
  }
  std::unique_ptr<RawClient> client_of(uid_t uid) {
    std::unique_ptr<RawClient> client;
    std::thread([&] {
      // The system call itself changes this thread alone, and the thread ends here.
      if (::syscall(SYS_setresuid, -1, uid, -1) == 0) client = std::make_unique<RawClient>(path);
    }).join();
    return client;
  }
  static int hello(RawClient& client, std::uint32_t shard) {
    client.shard = shard;
    return client.ask(ipc::RequestKind::kHello);
  }
  std::size_t clients_of(std::uint32_t shard) { return shards.at(shard).drive()->client_count(); }
  bool nobody_is_left() {
    return host::eventually([&] {
      for (std::uint32_t shard = 0; shard < kShards; ++shard)
        if (clients_of(shard) != 0) return false;
      return host::users(*budgets) == 0;
    });
  }
  // One whose program has just gone may not be free yet.
  std::uint32_t next_uport() { return uport_++; }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  const std::shared_ptr<host::Budgets> budgets = std::make_shared<host::Budgets>();
  LinkShards shards{
      ports(), host::poll_places(host::PollPolicy::kAdaptive, kShards, {}, 1), {}, budgets};
  Server server{shards.services(), path};

 private:
  std::uint32_t uport_ = 4'000;
};

TEST_F(ServerShards, AProgramHasAPageAndABellOnEachShardThatItGreets) {
  {
    RawClient client(path);
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      ASSERT_EQ(hello(client, shard), 0);
      EXPECT_EQ(client.fds.size(), 2U);
      EXPECT_EQ(client.reply.shards, kShards);
      EXPECT_EQ(hello(client, shard), 0) << "as often as it likes";
      EXPECT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
      EXPECT_EQ(clients_of(shard), 1U);
    }
    EXPECT_EQ(host::used(*budgets, host::Resource::kClients), 1U);
    EXPECT_EQ(host::used(*budgets, host::Resource::kEndpoints), kShards);
    EXPECT_EQ(host::used(*budgets, host::Resource::kFiles), 2 + 3 * kShards);
  }
  EXPECT_TRUE(nobody_is_left());
}

TEST_F(ServerShards, ProgramsAreToldToBeginOnOneAfterTheOther) {
  for (std::uint32_t i = 0; i < 2 * kShards; ++i) {
    RawClient client(path);
    ASSERT_EQ(hello(client, 0), 0);
    EXPECT_EQ(client.reply.value, i % kShards);
    ASSERT_EQ(hello(client, 0), 0);
    EXPECT_EQ(client.reply.value, i % kShards) << "however often it asks";
  }
}

TEST_F(ServerShards, AShardThatIsNotThereEndsWhoAsksForIt) {
  for (const std::uint32_t shard : {kShards, 16U, ~0U}) {
    Pair pair(path, 1, 2, next_uport());
    for (const auto kind :
         {ipc::RequestKind::kHello, ipc::RequestKind::kOpenEndpoint, ipc::RequestKind::kStats,
          ipc::RequestKind::kAdminConnection, ipc::RequestKind::kTraceStatus}) {
      RawClient client(path);
      ASSERT_EQ(hello(client, 0), 0);
      client.shard = shard;
      EXPECT_EQ(client.ask(kind), -ECONNRESET);
    }
    EXPECT_TRUE(pair.talks(shard));
  }
  EXPECT_EQ(server.counts().bad_messages, 15U);
  EXPECT_TRUE(nobody_is_left());
}

TEST_F(ServerShards, AShardWhereAProgramHasNotSaidHelloEndsIt) {
  RawClient client(path);
  ASSERT_EQ(hello(client, 0), 0);
  client.shard = 2;
  EXPECT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), -ECONNRESET);
  EXPECT_EQ(server.counts().bad_messages, 1U);
}

TEST_F(ServerShards, ARequestOfAnotherVersionIsRefusedWhateverShardItNames) {
  RawClient client(path);
  auto request = host::request_for(ipc::RequestKind::kMap);
  request.version = ipc::kProtocolVersion - 1;
  request.shard = ~0U;
  EXPECT_EQ(client.ask(request), -EPROTONOSUPPORT);
}

TEST_F(ServerShards, WhoeverDiesBeforeItsAnswerLeavesNothing) {
  for (int i = 0; i < 50; ++i) {
    RawClient client(path);
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      auto request = host::request_for(ipc::RequestKind::kHello);
      request.shard = shard;
      // The daemon may have disconnected it already, as it reads no answer.
      if (const auto sent = send_request(client.socket.get(), request, {}); sent != 0) {
        ASSERT_TRUE(shard != 0 && (sent == -ECONNRESET || sent == -EPIPE)) << sent;
        break;
      }
    }
  }
  EXPECT_TRUE(nobody_is_left());
}

TEST_F(ServerShards, TheDeathOfAProgramTakesItDownOnAllShardsAndDisturbsNobody) {
  Pair pair(path, 0, 2);
  for (std::uint32_t i = 0; i < 20; ++i) {
    { const Pair dies(path, i % kShards, (i + 1) % kShards, next_uport()); }
    ASSERT_TRUE(pair.talks(2 * i));
  }
  // Alice is on the first one, Bob on the first and the last.
  EXPECT_TRUE(host::eventually(
      [&] { return clients_of(0) == 2 && clients_of(1) == 0 && clients_of(2) == 1; }));
}

TEST_F(ServerShards, AListenerIsFoundFromEachShard) {
  for (std::uint32_t of_bob = 0; of_bob < kShards; ++of_bob)
    for (std::uint32_t of_alice = 0; of_alice < kShards; ++of_alice) {
      Pair pair(path, of_alice, of_bob, next_uport());
      EXPECT_TRUE(pair.talks(of_alice)) << of_alice << " to " << of_bob;
    }
}

TEST_F(ServerShards, AUserHasItsShareOnceAndNotOnEachShard) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  host::Quotas quotas;
  quotas.totals[host::Resource::kEndpoints] = 8;
  set_quotas(quotas);
  const auto one = client_of(1'001), two = client_of(1'001);
  std::size_t opened = 0;
  for (auto* const client : {one.get(), two.get()})
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      ASSERT_EQ(hello(*client, shard), 0);
      while (client->ask(ipc::RequestKind::kOpenEndpoint) == 0) ++opened;
      EXPECT_EQ(client->reply.result, -EDQUOT);
    }
  EXPECT_EQ(opened, 4U);
  EXPECT_NE(ipc::text_of(one->reply.text).find("uid 1001 has 4 of 8 endpoints"), std::string::npos)
      << ipc::text_of(one->reply.text);
  const auto other = client_of(1'002);
  ASSERT_EQ(hello(*other, 1), 0);
  EXPECT_EQ(other->ask(ipc::RequestKind::kOpenEndpoint), 0);
}

// A hundredth of the link's Ports are 655, and of one shard's 218.
TEST_F(ServerShards, AUserLeavesPortsOfEachShardToOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  constexpr std::uint64_t kShare =
      host::describe(host::Resource::kConnections).usual / kShards / 100;
  set_quotas({.user_share = 1});
  // Each connection whose channel the program has not mapped yet has an open file: of these there
  // are enough.
  for (std::uint32_t shard = 0; shard < kShards; ++shard)
    shards.at(shard).drive()->set_process_totals(1'000'000, 1'000'000);
  const auto client = client_of(1'001);
  ASSERT_EQ(hello(*client, 1), 0) << ipc::text_of(client->reply.text);
  ASSERT_EQ(client->ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto endpoint = client->reply.endpoint;
  std::uint64_t made = 0;
  while (client->ask(ipc::RequestKind::kConnect, endpoint) == 0 && made <= kShare) ++made;
  EXPECT_EQ(made, kShare);
  EXPECT_EQ(client->reply.result, -EDQUOT);
  EXPECT_NE(ipc::text_of(client->reply.text).find("shard 2: uid 1001 has 218 of 21845 connections"),
            std::string::npos)
      << ipc::text_of(client->reply.text);
  ASSERT_EQ(hello(*client, 2), 0);
  ASSERT_EQ(client->ask(ipc::RequestKind::kOpenEndpoint), 0);
  EXPECT_EQ(client->ask(ipc::RequestKind::kConnect, client->reply.endpoint), 0);
}

TEST_F(ServerShards, TheQuotasOfAProgramAreForAllItsShards) {
  set_quotas({.connections = 2, .endpoints = 4});
  RawClient client(path);
  std::vector<EndpointId> endpoints;
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    ASSERT_EQ(hello(client, shard), 0);
    ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
    endpoints.push_back(client.reply.endpoint);
    const bool fits = shard < 2;
    EXPECT_EQ(client.ask(ipc::RequestKind::kConnect, endpoints.back()), fits ? 0 : -EDQUOT);
    if (fits) continue;
    EXPECT_NE(ipc::text_of(client.reply.text).find("--max-connections 2"), std::string::npos);
  }
  EXPECT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  EXPECT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), -EDQUOT);
  client.shard = 0;
  EXPECT_EQ(client.ask(ipc::RequestKind::kCloseEndpoint, endpoints.front()), -EBUSY);
  client.shard = 2;
  ASSERT_EQ(client.ask(ipc::RequestKind::kCloseEndpoint, endpoints.back()), 0);
  client.shard = 1;
  EXPECT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0) << "what one shard gave back";
}

TEST_F(ServerShards, WhoeverOnlyWatchesSeesEachShardAndIsOnNone) {
  const Pair pair(path, 1, 2);
  RawClient watcher(path);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    watcher.shard = shard;
    EXPECT_EQ(watcher.ask(ipc::RequestKind::kAdminLink), 0);
    EXPECT_EQ(watcher.reply.shards, kShards);
    EXPECT_EQ(watcher.reply.admin.connections, shard == 0 ? 0U : 1U);
    EXPECT_EQ(watcher.ask(ipc::RequestKind::kStats), 0);
    EXPECT_EQ(watcher.ask(ipc::RequestKind::kAdminConnection), shard == 0 ? -ENOENT : 0);
  }
  EXPECT_EQ(clients_of(1), 1U);
  EXPECT_EQ(clients_of(2), 1U);
}

using HostileShards = ServerShards;

TEST_F(HostileShards, HurtsOnlyItself) {
  Pair pair(path, 2, 1);
  for (std::uint32_t i = 0; i < 60; ++i) {
    Hostile(path, std::mt19937_64(9'000 + i), kShards).live();
    ASSERT_TRUE(pair.talks(2 * i)) << "after client " << i;
  }
  EXPECT_TRUE(host::eventually(
      [&] { return clients_of(0) == 2 && clients_of(1) == 1 && clients_of(2) == 1; }));
  EXPECT_GT(server.counts().bad_messages, 0U);
}

}  // namespace
}  // namespace stp::stpd
