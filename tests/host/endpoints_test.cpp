// SPDX-License-Identifier: BSD-3-Clause
// The memory of clients: bound where they may bind it, and kept as long as the link needs it.
#include <vector>

#include "tests/host/service_fixture.h"

namespace stp::host {
namespace {

using RegionsTest = ServiceFixture;

TEST_F(RegionsTest, MemoryIsKeptUntilTheLinkHasLetGoOfIt) {
  const auto alive = send_from_kept_memory();
  const auto region = alice_region;
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), -EINPROGRESS);
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), -EINPROGRESS);
  EXPECT_FALSE(alive.expired());
  port->keeps_frames = false;
  turn();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), 0);
}

TEST_F(RegionsTest, MemoryIsSettledWhenNoFrameReadsItAndStaysMapped) {
  const auto alive = send_from_kept_memory();
  const auto region = alice_region;
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kSettle, region), -EINPROGRESS);
  port->keeps_frames = false;
  turn();
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kSettle, region), 0);
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(on_region(bob, ipc::RequestKind::kSettle, region), -EBADF) << "it is not Bob's";
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), 0);
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kSettle, region), -EBADF);
}

TEST_F(RegionsTest, MemoryOutsideTheRangeIsRefused) {
  const auto endpoint = open(alice);
  std::vector<std::byte> memory(2 * kBuffer);
  auto request = request_for(ipc::RequestKind::kMap);
  request.endpoint = endpoint;
  attachments.pieces = {memory};
  request.base = 65'535;
  EXPECT_EQ(ask(alice, request), -ERANGE);
  request.base = ~0U;
  EXPECT_EQ(ask(alice, request), -ERANGE);
  request.base = 0;
  request.direction = 2;
  EXPECT_EQ(ask(alice, request), -EINVAL);
  request.direction = 0;
  attachments.pieces = {};
  EXPECT_EQ(ask(alice, request), -EINVAL);
  attachments.pieces = {MutableBytes(memory).first(100)};
  EXPECT_EQ(ask(alice, request), -EINVAL);
}

}  // namespace
}  // namespace stp::host
