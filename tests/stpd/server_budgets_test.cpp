// SPDX-License-Identifier: BSD-3-Clause
// Budgets of users as their programs meet them at the daemon's socket.
#include <pwd.h>
#include <sys/mman.h>

#include <thread>

#include "libst/ipc/requests.h"
#include "tests/host/usage.h"
#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_socket.h"
#include "tools/stpd/region_memory.h"

namespace stp::stpd::server_budgets_test {
namespace {

class ServerBudgets : public testing::Test, protected ServedSocket {
 protected:
  ServerBudgets() {
    open_directory();
    start();
  }
  void set_quotas(const host::Quotas& quotas) {
    server.set_quotas(quotas);
    const auto turn = service.drive();
    turn->set_quotas(quotas);
  }
  static host::Request map_request(EndpointId endpoint, std::size_t size) {
    auto request = host::request_for(ipc::RequestKind::kMap);
    request.endpoint = endpoint;
    request.segment_count = request.piece_count = 1;
    request.segments[0] = {.fd_index = 0, .reserved = 0, .offset = 0, .length = size};
    request.pieces[0] = {.at = 0, .length = size};
    return request;
  }
  [[nodiscard]] std::uint64_t used(host::Resource resource) const {
    return host::used(*budgets, resource);
  }
};

constexpr std::size_t kSize = std::size_t{1} << 16;
// Files that keep the pages of a user from being moved.
const std::uint64_t kPinning = PagePins::possible() ? 1 : 0;

TEST_F(ServerBudgets, AUserWhoTakesAllItMayLeavesPlacesForOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  set_quotas({.clients = 8});
  std::vector<std::unique_ptr<RawClient>> programs;
  std::size_t in = 0;
  for (int i = 0; i < 12; ++i) {
    programs.push_back(client_of(1'001));
    in += programs.back()->ask(ipc::RequestKind::kHello) == 0 ? 1 : 0;
  }
  EXPECT_EQ(in, 4U);
  EXPECT_EQ(server.counts().refused, 8U);
  EXPECT_EQ(client_of(1'002)->ask(ipc::RequestKind::kHello), 0);
}

TEST_F(ServerBudgets, MemoryThatCannotBePaidForIsNotLookedAt) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto endpoint = client.reply.endpoint;
  set_quotas({.mapped_bytes = kSize / 2});
  const auto memory = ipc::SharedMemory::lend("test", kSize);  // none of its pages is made
  const auto files = std::array{memory->fd()};
  EXPECT_EQ(client.ask(map_request(endpoint, kSize), files), -EDQUOT);
  EXPECT_EQ(std::string(ipc::text_of(client.reply.text)),
            "this program has all that --max-mapped 32768 of stpd allows: raise it, then SIGHUP");
  set_quotas({.map_bytes = kSize / 2});
  EXPECT_EQ(client.ask(map_request(endpoint, kSize), files), -EDQUOT);
  EXPECT_NE(std::string(ipc::text_of(client.reply.text)).find("--max-map 32768"),
            std::string::npos);
  EXPECT_EQ(client.ask(map_request(endpoint, kSize)), -EDQUOT) << "whoever asks first is told";
  EXPECT_NE(std::string(ipc::text_of(client.reply.text)).find("--max-map 32768"),
            std::string::npos);
  set_quotas({});
  EXPECT_EQ(client.ask(map_request(endpoint, kSize)), 0) << "it may";
  EXPECT_EQ(used(host::Resource::kRegions), 0U) << "and has made nothing";
  EXPECT_EQ(client.ask(map_request(endpoint + 1, kSize), files), -EBADF);
  // It would be taken, but for the pages that its owner has not made.
  EXPECT_EQ(client.ask(map_request(endpoint, kSize), files), -EFAULT);
  EXPECT_EQ(bytes_made(memory->fd()), 0);
  EXPECT_EQ(used(host::Resource::kRegions), 0U);
  // What was mapped to look at it is unmapped by a thread of its own.
  for (int i = 0; i < 20'000 && used(host::Resource::kMappedBytes) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(used(host::Resource::kMappedBytes), 0U);
}

TEST_F(ServerBudgets, AllOfASegmentCountsHoweverLittleOfItIsUsed) {
  set_quotas({.mapped_bytes = kSize});
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto memory = made_memory(2 * kSize);
  auto request = map_request(client.reply.endpoint, 2 * kSize);
  request.pieces[0].length = std::uint64_t{1} << 14;
  EXPECT_EQ(client.ask(request, std::array{memory->fd()}), -EDQUOT);
}

TEST_F(ServerBudgets, WhatAProgramHadComesBackWhenItGoes) {
  {
    RawClient client(path);
    ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
    const auto endpoint = client.reply.endpoint;
    ASSERT_EQ(client.ask(ipc::RequestKind::kListen, endpoint), 0);
    const auto memory = made_memory(kSize);
    ASSERT_EQ(client.ask(map_request(endpoint, kSize), std::array{memory->fd()}), 0);
    EXPECT_EQ(used(host::Resource::kMappedBytes), kSize);
    EXPECT_TRUE(host::eventually(
        [&] { return used(host::Resource::kConnections) == host::limits::kBacklog; }));
    EXPECT_EQ(used(host::Resource::kFiles), 5 + kPinning);
    EXPECT_EQ(used(host::Resource::kMappings), 3 + host::limits::kBacklog);
  }
  for (int i = 0; i < 20'000 && host::users(*budgets) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (std::size_t i = 0; i < host::kResources; ++i)
    EXPECT_EQ(used(static_cast<host::Resource>(i)), 0U)
        << host::describe(static_cast<host::Resource>(i)).name;
}

TEST_F(ServerBudgets, AChannelThatIsMappedTakesNoFileAnyMore) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto before = used(host::Resource::kFiles);
  ASSERT_EQ(client.ask(ipc::RequestKind::kConnect, client.reply.endpoint), 0);
  EXPECT_EQ(used(host::Resource::kFiles), before + 1);
  EXPECT_EQ(used(host::Resource::kMappings), 3U);
  make_pages(client.fds.at(0).get(), client.reply.channel_size);
  ASSERT_EQ(client.say_mapped(client.reply.vc), 0);
  EXPECT_EQ(used(host::Resource::kFiles), before + kPinning);
  EXPECT_TRUE(host::eventually([&] { return used(host::Resource::kMappings) == 2; }))
      << "a worker unmaps it";
  EXPECT_EQ(used(host::Resource::kConnections), 1U);
}

TEST_F(ServerBudgets, WhatKeepsPagesFromBeingMovedTakesAFileOfItsUser) {
  if (kPinning == 0) GTEST_SKIP() << "the system permits no io_uring";
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto endpoint = client.reply.endpoint;
  const auto memory = made_memory(kSize);
  const auto map = [&] {
    return client.ask(map_request(endpoint, kSize), std::array{memory->fd()});
  };
  service.drive()->set_process_totals(1'000, used(host::Resource::kFiles) + 1);
  EXPECT_EQ(map(), -EDQUOT);
  EXPECT_NE(std::string(ipc::text_of(client.reply.text)).find("LimitNOFILE"), std::string::npos);
  service.drive()->set_process_totals(1'000, used(host::Resource::kFiles) + 2);
  EXPECT_EQ(map(), 0);
}

}  // namespace
}  // namespace stp::stpd::server_budgets_test
