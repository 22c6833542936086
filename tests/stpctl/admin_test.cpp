// SPDX-License-Identifier: BSD-3-Clause
// What a service shows of its clients, and to whom.
#include "libst/host/inspection.h"

#include <sys/socket.h>

#include "libst/ipc/requests.h"
#include "tests/host/service_fixture.h"

namespace stp::stpctl {
namespace {

constexpr uid_t kAlice = 1'001, kBob = 1'002;

ipc::ClientIdentity identity(pid_t pid, uid_t uid, bool administrator) {
  return {.pid = pid, .uid = uid, .groups = {}, .administrator = administrator};
}

class AdminTest : public host::ServiceFixture {
 protected:
  AdminTest() {
    come_as(alice, identity(11, kAlice, false));
    come_as(bob, identity(12, kBob, false));
  }
  host::ClientId watcher(uid_t uid, bool administrator) {
    std::string why;
    return service.drive()->add_client(identity(99, uid, administrator), false, why);
  }
  // Every entry that `client` is shown.
  std::vector<host::Reply> list(host::ClientId client, ipc::RequestKind kind) {
    std::vector<host::Reply> all;
    auto request = host::request_for(kind);
    questions = 0;
    for (;; ++questions) {
      if (ask(client, request) != 0) break;
      if (reply.vc != kNoneId || reply.region != kNoneId || reply.admin.shown != 0)
        all.push_back(reply);
      EXPECT_GT(reply.admin.next, request.cursor);
      request.cursor = reply.admin.next;
    }
    EXPECT_EQ(reply.result, -ENOENT);
    return all;
  }
  std::vector<host::Reply> connections(host::ClientId client) {
    return list(client, ipc::RequestKind::kAdminConnection);
  }

  int questions = 0;
};

TEST_F(AdminTest, AUserSeesTheConnectionsOfItsOwnProgramsAndAnAdministratorAll) {
  connect();
  const auto of_alice = connections(watcher(kAlice, false));
  ASSERT_EQ(of_alice.size(), 1U);
  EXPECT_EQ(of_alice[0].admin.pid, 11U);
  EXPECT_EQ(of_alice[0].admin.uid, kAlice);
  EXPECT_TRUE(connections(watcher(1'003, false)).empty());
  EXPECT_EQ(connections(watcher(0, true)).size(), 2U);
}

TEST_F(AdminTest, ClientsOfUnknownUsersAreNotTakenForOneUser) {
  come_as(alice, {});
  connect();
  const auto other = service.drive()->add_client(false);
  EXPECT_TRUE(connections(other).empty());
  EXPECT_EQ(connections(alice).size(), 1U);  // its own, all the same
}

TEST_F(AdminTest, AConnectionTellsItsEndsItsStateAndWhatCrossedIt) {
  connect();
  ASSERT_TRUE(send_nop(alice, alice_end, 1));
  turn();
  const auto all = connections(watcher(0, true));
  ASSERT_EQ(all.size(), 2U);
  const auto& of_alice = all[0].admin.pid == 11 ? all[0] : all[1];
  const auto& of_bob = all[0].admin.pid == 11 ? all[1] : all[0];
  EXPECT_EQ(of_alice.local_port, of_bob.remote_port);
  EXPECT_EQ(of_alice.mac, port->info().mac.to_u64());
  EXPECT_EQ(of_alice.admin.uport, kUport);
  EXPECT_EQ(of_bob.admin.uport, kUport);
  EXPECT_EQ(of_alice.admin.passive, 0U);
  EXPECT_EQ(of_bob.admin.passive, 1U);
  EXPECT_EQ(of_bob.admin.accepted, 1U);
  EXPECT_EQ(of_alice.state, static_cast<std::uint32_t>(VcState::kOpen));
  EXPECT_EQ(of_alice.admin.tx_control, 1U);
  EXPECT_GE(of_bob.admin.rx_control, 1U);
}

TEST_F(AdminTest, UserBytesAreCountedAtBothEnds) {
  const auto kept = send_from_kept_memory();
  const auto all = connections(watcher(0, true));
  ASSERT_EQ(all.size(), 2U);
  const auto& sender = all[0].admin.pid == 11 ? all[0].admin : all[1].admin;
  const auto& receiver = all[0].admin.pid == 11 ? all[1].admin : all[0].admin;
  EXPECT_EQ(sender.tx_data_bytes, kBuffer);
  EXPECT_EQ(sender.rx_data_bytes, 0U);
  EXPECT_EQ(receiver.rx_data_bytes, kBuffer);
}

TEST_F(AdminTest, AnEndpointWithoutConnectionsIsTakenForNoConnection) {
  connect();
  for (const auto& entry : connections(watcher(0, true))) EXPECT_EQ(entry.admin.connectionless, 0U);
  auto request = host::request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = host::usual_config();
  request.config.connectionless = 1;
  ASSERT_EQ(ask(alice, request), 0);
  request = host::request_for(ipc::RequestKind::kOpenPort);
  request.endpoint = reply.endpoint;
  ASSERT_EQ(ask(alice, request), 0);
  unsigned alone = 0;
  for (const auto& entry : connections(watcher(0, true))) {
    alone += entry.admin.connectionless;
    EXPECT_EQ(entry.admin.yields,
              entry.admin.connectionless == 1 ? ask::AdminConnection::kNotAsked : 0);
  }
  EXPECT_EQ(alone, 1U);
}

TEST_F(AdminTest, NobodyIsShownAKey) {
  connect();
  for (const auto& entry : connections(watcher(0, true))) {
    EXPECT_EQ(entry.local_key, 0U);
    EXPECT_EQ(entry.remote_key, 0U);
  }
}

TEST_F(AdminTest, AConnectionThatWaitsToBeAcceptedSaysSo) {
  alice_endpoint = open(alice);
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
  const auto before = connections(watcher(kAlice, false));
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].admin.yields, ask::AdminConnection::kNotAsked) << "nobody has answered";
  turn();
  const auto of_bob = connections(watcher(kBob, false));
  ASSERT_EQ(of_bob.size(), 1U);
  EXPECT_EQ(of_bob[0].admin.accepted, 0U);
}

TEST_F(AdminTest, RegionsAreListedWithTheirBufxAndMxUntilTheyAreGone) {
  const auto endpoint = open(alice);
  std::vector<std::byte> memory(4 * kBuffer);
  ASSERT_EQ(map(alice, endpoint, Direction::kReceive, memory), 0);
  const auto region = reply.region;
  ASSERT_EQ(on_region(alice, ipc::RequestKind::kAllocMx, region), 0);
  const auto all = list(watcher(kAlice, false), ipc::RequestKind::kAdminRegion);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].region, region);
  EXPECT_EQ(all[0].admin.bytes, memory.size());
  EXPECT_EQ(all[0].admin.count, 4U);
  EXPECT_EQ(all[0].admin.mx_count, 1U);
  EXPECT_EQ(all[0].admin.direction, static_cast<std::uint32_t>(Direction::kReceive));
  EXPECT_TRUE(list(watcher(kBob, false), ipc::RequestKind::kAdminRegion).empty());
  ASSERT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), 0);
  EXPECT_TRUE(list(watcher(0, true), ipc::RequestKind::kAdminRegion).empty());
}

TEST_F(AdminTest, AUserSeesItsOwnBudgetsAndAnAdministratorThoseOfAll) {
  open(alice);
  std::vector<std::byte> memory(kBuffer);
  ASSERT_EQ(map(alice, open(alice), Direction::kReceive, memory), 0);
  const auto of_bob = list(watcher(kBob, false), ipc::RequestKind::kAdminUser);
  ASSERT_EQ(of_bob.size(), 1U);
  EXPECT_EQ(of_bob[0].admin.uid, kBob);
  const auto all = list(watcher(0, true), ipc::RequestKind::kAdminUser);
  ASSERT_EQ(all.size(), 3U);  // root, alice, bob
  EXPECT_EQ(all[0].admin.trusted, 1U);
  const auto& of_alice = all[1].admin;
  EXPECT_EQ(of_alice.uid, kAlice);
  EXPECT_EQ(of_alice.trusted, 0U);
  EXPECT_EQ(of_alice.used[static_cast<std::size_t>(host::Resource::kEndpoints)], 2U);
  EXPECT_EQ(of_alice.most[static_cast<std::size_t>(host::Resource::kEndpoints)], 65'536U / 2);
  EXPECT_EQ(of_alice.used[static_cast<std::size_t>(host::Resource::kRegions)], 1U);
  EXPECT_EQ(of_alice.most[static_cast<std::size_t>(host::Resource::kMappings)], host::kNoBound);
  auto request = host::request_for(ipc::RequestKind::kAdminUser);
  request.cursor = ~std::uint64_t{0};
  EXPECT_EQ(ask(alice, request), -ENOENT);
}

TEST_F(AdminTest, TheLinkIsHeldForNoMoreThanAFewHundredEntriesOfOthers) {
  const auto endpoint = open(alice);
  std::vector<std::byte> memory(kBuffer);
  constexpr std::uint32_t kRegions = 1'500;
  for (std::uint32_t i = 0; i < kRegions; ++i) {
    auto request = host::request_for(ipc::RequestKind::kMap);
    request.endpoint = endpoint;
    request.direction = static_cast<std::uint32_t>(Direction::kReceive);
    request.base = i;
    attachments.pieces = {memory};
    ASSERT_EQ(ask(alice, request), 0);
  }
  EXPECT_TRUE(list(watcher(kBob, false), ipc::RequestKind::kAdminRegion).empty());
  EXPECT_GE(questions, 2);
  EXPECT_EQ(list(watcher(kAlice, false), ipc::RequestKind::kAdminRegion).size(), kRegions);
}

TEST_F(AdminTest, ACursorThatNamesNoPortFindsNothing) {
  connect();
  auto request = host::request_for(ipc::RequestKind::kAdminConnection);
  for (std::uint64_t const cursor :
       {std::uint64_t{0xffff}, std::uint64_t{0x1'0000}, ~std::uint64_t{0}}) {
    request.cursor = cursor;
    EXPECT_EQ(ask(watcher(0, true), request), -ENOENT) << cursor;
  }
}

TEST_F(AdminTest, TheLinkAndHowMuchThereIsAreToldToEverybody) {
  connect();
  ASSERT_EQ(ask(watcher(1'003, false), ipc::RequestKind::kAdminLink), 0);
  EXPECT_EQ(ipc::text_of(reply.text), "test");
  EXPECT_EQ(reply.admin.connections, 2U);
  EXPECT_EQ(reply.admin.clients, 3U);
  EXPECT_EQ(reply.admin.link_up, 1U);
  EXPECT_EQ(reply.admin.administrator, 0U);
}

TEST_F(AdminTest, CountersOfTheOwnerStandBehindTheLinks) {
  service.drive()->add_counters([] {
    return std::vector<port::PortCounter>{{"of_the_owner", 42}};
  });
  auto request = host::request_for(ipc::RequestKind::kStats);
  std::string last;
  for (; ask(alice, request) == 0; ++request.index) last = ipc::text_of(reply.text);
  EXPECT_EQ(last, "of_the_owner");
  EXPECT_EQ(service.drive()->all_counters().back().value, 42U);
  EXPECT_EQ(service.drive()->all_counters().size(), request.index);
}

TEST(AdminRights, RootAndTheUserOfTheDaemonAreAdministrators) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const os::UniqueFd one(ends[0]), other(ends[1]);
  const auto self = ipc::identify_peer(one.get());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->pid, ::getpid());
  EXPECT_EQ(self->uid, ::getuid());
  EXPECT_TRUE(self->administrator);
}

}  // namespace
}  // namespace stp::stpctl
