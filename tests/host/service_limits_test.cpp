// SPDX-License-Identifier: BSD-3-Clause
// No client can use up what others need.
#include <vector>

#include "libst/host/budgets.h"
#include "libst/os/file_limit.h"
#include "tests/host/service_fixture.h"

namespace stp::host {
namespace {

using ServiceLimits = ServiceFixture;

TEST_F(ServiceLimits, MxAreLimitedPerClientAndFreedWithTheirRegion) {
  const auto endpoint = open(alice);
  std::vector<std::byte> memory(kBuffer);
  ASSERT_EQ(map(alice, endpoint, Direction::kReceive, memory), 0);
  const auto region = reply.region;
  std::size_t count = 0;
  while (on_region(alice, ipc::RequestKind::kAllocMx, region) == 0) ++count;
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_EQ(count, Quotas{}.mxs);
  ASSERT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), 0);
  ASSERT_EQ(map(alice, endpoint, Direction::kReceive, memory), 0);
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kAllocMx, reply.region), 0);
  auto request = request_for(ipc::RequestKind::kFreeMx);
  request.endpoint = endpoint;
  request.mx = 65'536;
  EXPECT_EQ(ask(alice, request), -ERANGE);
}

TEST_F(ServiceLimits, EndpointsAndBufxTablesAreLimited) {
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  request.config.rx_bufx_count = ~0U;
  ASSERT_EQ(ask(alice, request), 0);
  auto map_far = request_for(ipc::RequestKind::kMap);
  std::vector<std::byte> memory(kBuffer);
  map_far.endpoint = reply.endpoint;
  map_far.direction = static_cast<std::uint32_t>(Direction::kReceive);
  map_far.base = 0xf0000000;
  attachments.pieces = {memory};
  EXPECT_EQ(ask(alice, map_far), -ENOMEM);  // beyond what a Node can bind
  request.config = usual_config();
  std::size_t endpoints = 1;
  while (ask(alice, request) == 0) ++endpoints;
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_EQ(endpoints, Quotas{}.endpoints);
}

TEST_F(ServiceLimits, ConnectionsHoldPerClientAndComeBack) {
  if (os::raise_file_limit() < Quotas{}.connections + 100)
    GTEST_SKIP() << "this user may not have as many files open (ulimit -Hn)";
  const auto endpoint = open(alice);
  std::vector<VcId> vcs;
  while (on_endpoint(alice, ipc::RequestKind::kConnect, endpoint) == 0) vcs.push_back(reply.vc);
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_EQ(vcs.size(), Quotas{}.connections);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConnect, open(bob)), 0);
  ASSERT_EQ(on_vc(alice, ipc::RequestKind::kClose, vcs.back(), true), 0);
  turn();
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), 0);
}

TEST_F(ServiceLimits, LargeChannelsCountByTheirBytes) {
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  request.config.slots = kMaxSlots;
  request.config.credits = kMaxCredits;
  ASSERT_EQ(ask(alice, request), 0);
  const auto endpoint = reply.endpoint;
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, endpoint), 0);
  std::uint64_t bytes = 0;
  while (on_endpoint(alice, ipc::RequestKind::kConnect, endpoint) == 0) bytes += reply.channel_size;
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_GT(bytes, 0U);
  EXPECT_LE(bytes, Quotas{}.queue_bytes);
}

}  // namespace
}  // namespace stp::host
