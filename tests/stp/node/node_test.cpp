// SPDX-License-Identifier: BSD-3-Clause
// What a Node itself does with a call before a mechanism has it: names that name nothing, lists,
// and the end of what was composed.
#include "stp/node/node.h"

#include <cerrno>

#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using NodeCalls = TwoNodes;

TEST_F(NodeCalls, an_id_that_names_nothing_is_refused) {
  auto& node = a.node;
  const EndpointId no_endpoint = 12'345;
  const VcId no_vc = 12'345;
  EndpointConfig config;
  VcInfo info{};
  EndpointId endpoint = kNoneId;
  VcId vc = kNoneId;
  RegionId region = kNoneId;
  std::uint16_t mx = 0;
  std::uint64_t cookie = 0;
  ChannelMemory channel({8, 8});
  EXPECT_EQ(node.configure(no_endpoint, config), -EBADF);
  EXPECT_EQ(node.endpoint_config(no_endpoint, config), -EBADF);
  EXPECT_EQ(node.close_endpoint(no_endpoint), -EBADF);
  EXPECT_EQ(node.map(no_endpoint, Direction::kReceive, 0, {}, region), -EBADF);
  EXPECT_LT(node.unmap(region), 0);
  EXPECT_LT(node.alloc_mx(region, vc, 0, mx), 0);
  EXPECT_LT(node.free_mx(no_endpoint, 1), 0);
  EXPECT_EQ(node.listen(no_endpoint, 1), -EBADF);
  EXPECT_EQ(node.unlisten(no_endpoint), -EBADF);
  EXPECT_EQ(node.stock(no_endpoint, channel.data(), 1), -EBADF);
  EXPECT_FALSE(node.unstock(no_endpoint, cookie));
  EXPECT_EQ(node.accept(no_endpoint, vc), -EBADF);
  EXPECT_EQ(node.backlog(no_endpoint), 0U);
  EXPECT_EQ(node.connect(no_endpoint, kMacB, 1, channel.data(), 1, vc, now), -EBADF);
  EXPECT_EQ(node.open_port(no_endpoint, channel.data(), 1, vc, now), -EBADF);
  EXPECT_EQ(node.admit(no_vc, {}, now), -EBADF);
  EXPECT_EQ(node.refuse(no_vc, {}, now), -EBADF);
  EXPECT_EQ(node.close(no_vc, true, now), -EBADF);
  EXPECT_EQ(node.vc_info(no_vc, info), -EBADF);
  EXPECT_EQ(node.table_bytes(no_endpoint), 0U);
  EXPECT_EQ(node.table_growth(no_endpoint, Direction::kReceive, 0, {}), 0U);
  node.kick(no_vc);
  EXPECT_EQ(node.vc_count(), 0U);
  endpoint = a.open();
  EXPECT_EQ(node.endpoint_config(endpoint, config), 0);
  ASSERT_EQ(node.close_endpoint(endpoint), 0);
  EXPECT_EQ(node.endpoint_config(endpoint, config), -EBADF) << "an id is not used again";
}

TEST_F(NodeCalls, connections_are_listed_by_their_ports) {
  EXPECT_EQ(a.node.vc_after(0), kNoneId);
  ASSERT_NO_FATAL_FAILURE(connect());
  const auto first = ca.id;
  const auto first_memory = std::move(ca.memory);
  begin_connect();
  EXPECT_EQ(a.node.vc_count(), 2U);
  std::vector<VcId> visited;
  a.node.for_each_vc(
      [](void* context, VcId vc) { static_cast<std::vector<VcId>*>(context)->push_back(vc); },
      &visited);
  ASSERT_EQ(visited.size(), 2U);
  EXPECT_TRUE((visited == std::vector{first, ca.id}) || (visited == std::vector{ca.id, first}));
  std::vector<VcId> walked;
  for (auto vc = a.node.vc_after(0); vc != kNoneId;) {
    walked.push_back(vc);
    VcInfo info{};
    ASSERT_EQ(a.node.vc_info(vc, info), 0);
    vc = a.node.vc_after(info.local_port);
  }
  EXPECT_EQ(walked, visited);
}

TEST_F(NodeCalls, both_ends_of_a_connection_know_the_other_by_the_same_names) {
  ASSERT_NO_FATAL_FAILURE(connect());
  VcInfo of_a{}, of_b{};
  ASSERT_EQ(a.node.vc_info(ca.id, of_a), 0);
  ASSERT_EQ(b.node.vc_info(cb.id, of_b), 0);
  EXPECT_EQ(of_a.state, VcState::kOpen);
  EXPECT_EQ(of_a.endpoint, endpoint_a);
  EXPECT_EQ(of_a.cookie, 77U);
  EXPECT_EQ(of_a.peer_mac, kMacB);
  EXPECT_EQ(of_b.peer_mac, kMacA);
  EXPECT_EQ(of_a.local_port, of_b.remote_port);
  EXPECT_EQ(of_a.remote_port, of_b.local_port);
  EXPECT_EQ(of_a.local_key, of_b.remote_key);
  EXPECT_EQ(of_a.remote_key, of_b.local_key);
  EXPECT_EQ(of_a.local_slots, of_b.remote_slots);
  EXPECT_EQ(of_a.remote_bufsize, of_b.local_bufsize);
  EXPECT_FALSE(of_a.passive);
  EXPECT_TRUE(of_b.passive);
  EXPECT_EQ(of_b.uport, 3'000U);
  EXPECT_EQ(of_a.uport, 3'000U);
}

TEST_F(NodeCalls, a_stocked_channel_comes_back_unused) {
  const auto endpoint = b.open();
  std::uint64_t cookie = 0;
  EXPECT_FALSE(b.node.unstock(endpoint, cookie));
  b.stock(endpoint, 2);
  ASSERT_TRUE(b.node.unstock(endpoint, cookie));
  EXPECT_EQ(cookie, 2U);
  ASSERT_TRUE(b.node.unstock(endpoint, cookie));
  EXPECT_EQ(cookie, 1U);
  EXPECT_FALSE(b.node.unstock(endpoint, cookie));
}

TEST_F(NodeCalls, a_frame_buffer_holds_the_longest_frame) {
  EXPECT_EQ(a.node.frame_room(),
            wire::kMaxHeadSize + (std::size_t{1} << a.config.max_stu) + wire::kAppendSize);
}

// An inspecting listener's request is refused where its user closes it instead of deciding.
TEST_F(NodeCalls, closing_a_request_that_waits_for_a_decision_refuses_it) {
  listener = b.open({.inspect = true});
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  settle();
  accept();
  VcInfo info{};
  ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
  ASSERT_EQ(info.state, VcState::kAsked);
  ASSERT_EQ(b.node.close(cb.id, false, now), 0);
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
}

}  // namespace
}  // namespace stp::test
