// SPDX-License-Identifier: BSD-3-Clause
// What one user takes leaves something for others, and all of it comes back.
#include <vector>

#include "libst/host/budgets.h"
#include "libst/ipc/requests.h"
#include "libst/os/file_limit.h"
#include "stp/node/connection/key_guard.h"
#include "stp/node/inbound/unscheduled.h"
#include "tests/host/service_fixture.h"
#include "tests/host/usage.h"

namespace stp::host::service_budgets_test {
namespace {

constexpr uid_t kAlice = 1'001, kBob = 1'002;

class ServiceBudgets : public ServiceFixture {
 protected:
  ServiceBudgets() {
    come_as(alice, of(kAlice));
    come_as(bob, of(kBob));
  }
  static ipc::ClientIdentity of(uid_t uid) {
    return {.pid = 1, .uid = uid, .groups = {}, .administrator = false};
  }
  ClientId join(uid_t uid) { return service.drive()->add_client(of(uid), false, why); }
  [[nodiscard]] std::uint64_t used(Resource resource) const {
    return host::used(*budgets, resource);
  }
  [[nodiscard]] std::uint64_t used_by(uid_t uid, Resource resource) const {
    auto user = budgets->after({});
    while (user && user->uid != uid) user = budgets->after(user->uid);
    return user ? user->used[static_cast<std::size_t>(resource)] : 0;
  }
  // But for the places of programs, and what comes with them.
  void expect_nothing_used() const {
    for (std::size_t i = 1; i < kResources; ++i)
      EXPECT_EQ(used(static_cast<Resource>(i)), 0U) << describe(static_cast<Resource>(i)).name;
  }
  // As if it had come through a socket: memory that is kept, and counted.
  int map_kept(ClientId client, EndpointId endpoint, std::uint32_t base = 0) {
    auto request = request_for(ipc::RequestKind::kMap);
    request.endpoint = endpoint;
    request.base = base;
    request.direction = static_cast<std::uint32_t>(Direction::kReceive);
    attachments.pieces = {memory};
    attachments.keep = std::make_shared<int>();
    return ask(client, request);
  }

  std::string why;
  std::vector<std::byte> memory = std::vector<std::byte>(kBuffer);
};

TEST_F(ServiceBudgets, OneUserCannotTakeAllPlaces) {
  service.drive()->set_quotas({.clients = 16});
  std::size_t taken = 0;
  while (join(kAlice) != 0) ++taken;
  EXPECT_EQ(taken, 8U);
  EXPECT_EQ(why,
            "uid 1001 has 8 of 16 places of programs, more exceeds its limit: raise --max-clients "
            "or --user-share");
  EXPECT_NE(join(kBob), 0U);
  EXPECT_NE(join(1'003), 0U);
}

TEST_F(ServiceBudgets, APlaceIsTakenUntilNothingOfItsProgramIsLeft) {
  service.drive()->set_quotas({.clients = 2});
  const auto first = join(kAlice);
  ASSERT_NE(first, 0U);
  EXPECT_EQ(join(kAlice), 0U);
  port->cut = true;
  ASSERT_EQ(on_endpoint(first, ipc::RequestKind::kConnect, open(first)), 0);
  service.drive()->remove_client(first);
  turn(1);
  port->ahead = 10 * kSecond;  // nobody has answered its Request_Disconnect
  turn(20);
  port->ahead = 20 * kSecond;
  turn(20);
  EXPECT_EQ(used(Resource::kClients), 0U);
  EXPECT_NE(join(kAlice), 0U);
}

TEST_F(ServiceBudgets, OneUserCannotTakeAllMx) {
  std::vector<ClientId> programs{alice};
  while (programs.size() < 9) programs.push_back(join(kAlice));
  std::size_t mxs = 0;
  for (const auto program : programs) {
    ASSERT_EQ(map(program, open(program), Direction::kReceive, memory), 0);
    const auto region = reply.region;
    while (on_region(program, ipc::RequestKind::kAllocMx, region) == 0) ++mxs;
    EXPECT_EQ(reply.result, -EDQUOT);
  }
  EXPECT_EQ(mxs, describe(Resource::kMx).usual / 2);
  EXPECT_EQ(std::string(ipc::text_of(reply.text)),
            "uid 1001 has 32767 of 65535 Mx, more exceeds its limit: raise --user-share");
  ASSERT_EQ(map(bob, open(bob), Direction::kReceive, memory), 0);
  EXPECT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, reply.region), 0);
  for (const auto program : programs) service.drive()->remove_client(program);
  turn(2'000);
  EXPECT_EQ(used(Resource::kMx), 1U);
}

TEST_F(ServiceBudgets, OneUserCannotTakeAllRegionsEndpointsOrMemory) {
  Quotas quotas;
  quotas.totals[Resource::kEndpoints] = 20;
  quotas.totals[Resource::kRegions] = 40;
  quotas.totals[Resource::kMappedBytes] = 40 * kBuffer;
  service.drive()->set_quotas(quotas);
  std::vector<EndpointId> endpoints;
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  while (ask(alice, request) == 0) endpoints.push_back(reply.endpoint);
  EXPECT_EQ(endpoints.size(), 10U);
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_NE(std::string(ipc::text_of(reply.text)).find("--total-endpoints"), std::string::npos);
  std::uint32_t regions = 0;
  while (map_kept(alice, endpoints[0], regions) == 0) ++regions;
  EXPECT_EQ(regions, 20U);
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_NE(std::string(ipc::text_of(reply.text)).find("--total-regions"), std::string::npos);
  const auto endpoint = open(bob);
  EXPECT_EQ(map_kept(bob, endpoint), 0);
}

TEST_F(ServiceBudgets, OneUserCannotTakeAllConnectionsNorTheirMemory) {
  const auto size = ChannelGeometry{64, 64}.size();
  Quotas quotas;
  quotas.totals[Resource::kQueueBytes] = 20 * size;
  service.drive()->set_quotas(quotas);
  const auto endpoint = open(alice);
  std::size_t connections = 0;
  while (on_endpoint(alice, ipc::RequestKind::kConnect, endpoint) == 0) ++connections;
  EXPECT_EQ(connections, 10U);
  EXPECT_NE(std::string(ipc::text_of(reply.text)).find("--total-queues"), std::string::npos);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConnect, open(bob)), 0);
}

TEST_F(ServiceBudgets, OneUserCannotTakeAllMappingsAndFilesOfTheDaemon) {
  service.drive()->set_process_totals(20, 1'000);
  const auto endpoint = open(alice);
  std::size_t connections = 0;
  while (on_endpoint(alice, ipc::RequestKind::kConnect, endpoint) == 0) ++connections;
  EXPECT_EQ(connections, 10U);
  EXPECT_NE(std::string(ipc::text_of(reply.text)).find("vm.max_map_count"), std::string::npos);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConnect, open(bob)), 0);
  service.drive()->offer_memory([](uid_t, std::shared_ptr<void> thing) { return thing; });
  service.drive()->set_process_totals(1'000, 0);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConnect, open(bob)), -EDQUOT);
  EXPECT_NE(std::string(ipc::text_of(reply.text)).find("LimitNOFILE"), std::string::npos);
}

// Each channel may wait for threads that map memory of programs: 16 in a row held up the link.
TEST_F(ServiceBudgets, TheStockOfAListenerInAnotherProcessGrowsByOneChannelInATurn) {
  service.drive()->offer_memory([](uid_t, std::shared_ptr<void> thing) { return thing; });
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  auto second = request_for(ipc::RequestKind::kListen);
  second.endpoint = open(alice);
  second.uport = kUport + 1;
  ASSERT_EQ(ask(alice, second), 0);
  EXPECT_EQ(used(Resource::kConnections), 2U);
  for (std::uint64_t stocked = 3; stocked <= 2 * limits::kBacklog; ++stocked) {
    EXPECT_NE(service.drive()->poll(), 0U) << "it does not sleep before";
    EXPECT_EQ(used(Resource::kConnections), stocked);
  }
  turn();
  EXPECT_EQ(used(Resource::kConnections), 2 * limits::kBacklog);
  EXPECT_EQ(service.drive()->poll(), 0U);
}

// Each user's listeners are a queue of their own.
TEST_F(ServiceBudgets, TheStockOfAListenerDoesNotWaitForAllListenersOfAnotherUser) {
  service.drive()->offer_memory([](uid_t, std::shared_ptr<void> thing) { return thing; });
  for (std::uint16_t i = 0; i < 8; ++i) {
    auto listen = request_for(ipc::RequestKind::kListen);
    listen.endpoint = open(alice);
    listen.uport = static_cast<std::uint16_t>(kUport + 1 + i);
    ASSERT_EQ(ask(alice, listen), 0);
  }
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  turn(2 * limits::kBacklog);
  EXPECT_EQ(used_by(kBob, Resource::kConnections), limits::kBacklog);
}

TEST_F(ServiceBudgets, ManyRequestsToConnectFillTheStockByOneChannelInATurnToo) {
  service.drive()->offer_memory([](uid_t, std::shared_ptr<void> thing) { return thing; });
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  const auto endpoint = open(alice);
  for (std::size_t i = 0; i < 2 * limits::kBacklog; ++i)
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), 0);
  auto before = used_by(kBob, Resource::kConnections);
  for (std::size_t i = 0; i < 4 * limits::kBacklog; ++i) {
    service.drive()->poll();
    const auto now = used_by(kBob, Resource::kConnections);
    EXPECT_LE(now, before + 2) << i;
    before = now;
  }
  EXPECT_GE(before, limits::kBacklog);
}

TEST_F(ServiceBudgets, NothingIsStockedForWhoListensNoMore) {
  service.drive()->offer_memory([](uid_t, std::shared_ptr<void> thing) { return thing; });
  bob_endpoint = open(bob);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kUnlisten, bob_endpoint), 0);
    turn(3);
    EXPECT_EQ(used(Resource::kConnections), 0U);
  }
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  turn(2 * limits::kBacklog);
  EXPECT_EQ(used(Resource::kConnections), limits::kBacklog);
}

// What regions that many connections open would take to keep track of.
class Windows : public ServiceBudgets {
 protected:
  static constexpr std::size_t kConnections = 24;
  static constexpr std::uint32_t kRegions = 16;  // of each
  static constexpr std::uint64_t kTotal = std::uint64_t{16} << 20;

  // Two ends of one connection.
  struct Pair {
    End out, in;
  };
  void serve() {
    Quotas quotas;
    quotas.totals[Resource::kWindowBytes] = kTotal;
    service.drive()->set_quotas(quotas);
    bob_endpoint = open(bob);
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
    lend(bob, bob_endpoint);
  }
  void lend(ClientId of, EndpointId endpoint) {
    ASSERT_EQ(map(of, endpoint, Direction::kReceive, destination), 0);
    ASSERT_EQ(on_region(of, ipc::RequestKind::kAllocMx, reply.region), 0);
    mx = static_cast<std::uint16_t>(reply.mx);
  }
  Pair connect_to_bob(ClientId from, EndpointId endpoint) {
    Pair pair;
    EXPECT_EQ(on_endpoint(from, ipc::RequestKind::kConnect, endpoint), 0);
    pair.out = take_end();
    turn();
    EXPECT_EQ(accept_soon(bob, bob_endpoint), 0);
    pair.in = take_end();
    return pair;
  }
  // True: the peer sees the region, false: that there is none.
  bool open_region(ClientId of, End& own, End& peer, std::uint32_t id) {
    SendEntry mra{};
    mra.header.op_flags = wire::op_flags(wire::Op::kMemoryRegionAvailable);
    mra.header.param = 1'024;
    mra.header.mx = mx;
    mra.header.set_t_len(kBuffer);
    mra.header.d_id = mra.header.s_id = id;
    EXPECT_TRUE(own.channel.send(mra));
    page_of(of).bells.ring(own.bell);
    turn();
    ReceivedEntry seen;
    EXPECT_TRUE(peer.channel.receive(seen)) << "the peer has its answer";
    EXPECT_EQ(seen.header.op(), wire::Op::kMemoryRegionAvailable);
    return !seen.header.has(wire::flag::kReject);
  }

  std::uint16_t mx = 0;
};

// protocol: 7.19
TEST_F(Windows, OfManyConnectionsOfOneUserStayWithinItsBudget) {
  serve();
  std::vector<Pair> pairs;
  std::uint32_t opened = 0, refused = 0;
  for (std::size_t i = 0; i < kConnections; ++i) {
    pairs.push_back(connect_to_bob(alice, open(alice)));
    auto& pair = pairs.back();
    for (std::uint32_t id = 1; id <= kRegions; ++id)
      ++(open_region(bob, pair.in, pair.out, id) ? opened : refused);
    EXPECT_LE(used(Resource::kWindowBytes), kTotal / 2);
  }
  EXPECT_GT(opened, 0U);
  EXPECT_EQ(opened + refused, kConnections * kRegions);
  EXPECT_LT(opened, refused);
  EXPECT_EQ(service.drive()->node().counters().get(Counter::kWindowsFull), refused);
  // The half that is left is for others, by their parts.
  const auto carol = join(1'003);
  const auto endpoint = open(carol);
  auto pair = connect_to_bob(carol, endpoint);
  lend(carol, endpoint);
  EXPECT_TRUE(open_region(carol, pair.out, pair.in, 1));
  service.drive()->remove_client(bob);
  turn(2'000);
  EXPECT_LT(used(Resource::kWindowBytes), kTotal / 16) << "carol's";
  service.drive()->remove_client(carol);
  turn(2'000);
  EXPECT_EQ(used(Resource::kWindowBytes), 0U);
}

TEST_F(ServiceBudgets, AnEndpointWithoutConnectionsPaysForItsTables) {
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  request.config.connectionless = 1;
  ASSERT_EQ(ask(alice, request), 0);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kOpenPort, reply.endpoint), 0);
  const ChannelGeometry queues{64, 64};
  EXPECT_EQ(used(Resource::kQueueBytes),
            queues.size() + UnscheduledBlocks::footprint() + sizeof(KeyGuard));
}

TEST_F(ServiceBudgets, AProgramOfRootsAndOneWithItsOwnNodeAreHeldByTheWholeOnly) {
  Quotas quotas{.clients = 16};
  quotas.totals[Resource::kEndpoints] = 20;
  service.drive()->set_quotas(quotas);
  std::size_t taken = 0;
  while (join(0) != 0) ++taken;
  EXPECT_EQ(taken, 16U);
  const auto own = service.drive()->add_client(false);
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  std::size_t endpoints = 0;
  while (ask(own, request) == 0) ++endpoints;
  EXPECT_EQ(endpoints, 20U);
}

TEST_F(ServiceBudgets, WhatIsRefusedCostsNothing) {
  const auto endpoint = open(alice);
  service.drive()->set_quotas({.regions = 0, .mxs = 0});
  EXPECT_EQ(map_kept(alice, endpoint), -EDQUOT);
  EXPECT_EQ(std::string(ipc::text_of(reply.text)),
            "this program has all that --max-regions 0 of stpd allows: raise it, then SIGHUP");
  service.drive()->set_quotas({});
  EXPECT_EQ(map_kept(alice, endpoint, 65'536), -ERANGE);
  EXPECT_EQ(map_kept(alice, endpoint), 0);
  const auto region = reply.region;
  EXPECT_EQ(map_kept(alice, endpoint), -EBUSY);  // by the Node: what was reserved goes back
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kAllocMx, region, 77), -EBADF);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kOpenPort, endpoint), -EINVAL);
  EXPECT_EQ(used(Resource::kRegions), 1U);
  EXPECT_EQ(used(Resource::kMx), 0U);
  EXPECT_EQ(used(Resource::kConnections), 0U);
  const auto tables = used(Resource::kTableBytes);
  EXPECT_GT(tables, 0U);
  EXPECT_EQ(map_kept(alice, endpoint, 60'000), 0);
  EXPECT_GT(used(Resource::kTableBytes), tables);
  ASSERT_EQ(on_region(alice, ipc::RequestKind::kUnmap, reply.region), 0);
  ASSERT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), 0);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, endpoint), 0);
  turn();
  expect_nothing_used();
}

TEST_F(ServiceBudgets, EveryKindOfEndGivesBackEverything) {
  // Closed one by one.
  connect();
  ASSERT_EQ(map_kept(bob, bob_endpoint), 0);
  const auto region = reply.region;
  ASSERT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, region), 0);
  ASSERT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, region, bob_end.vc), 0);
  alice_end = {};
  bob_end.memory.reset();
  attachments = {};
  ASSERT_EQ(on_vc(bob, ipc::RequestKind::kClose, bob_end.vc, true), 0);
  turn(50);
  EXPECT_EQ(used(Resource::kMx), 1U);
  ASSERT_EQ(on_region(bob, ipc::RequestKind::kUnmap, region), 0);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kCloseEndpoint, bob_endpoint), 0);
  turn(50);
  // Left behind by one that goes.
  service.drive()->remove_client(alice);
  turn(50);
  expect_nothing_used();
  alice = join(kAlice);
  ASSERT_NE(alice, 0U);
  send_from_kept_memory();
  port->keeps_frames = false;
  service.drive()->remove_client(alice);
  service.drive()->remove_client(bob);
  alice_end = bob_end = {};
  attachments = {};
  turn(50);
  expect_nothing_used();
  EXPECT_EQ(used(Resource::kClients), 0U);
  EXPECT_EQ(users(*budgets), 0U);
  EXPECT_EQ(service.drive()->client_count(), 0U);
}

}  // namespace
}  // namespace stp::host::service_budgets_test
