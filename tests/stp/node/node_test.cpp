// SPDX-License-Identifier: BSD-3-Clause
// What a Node itself does with a call before a mechanism has it: names that name nothing, lists,
// and the end of what was composed.

#include "stp/node/node.h"

#include <cerrno>
#include <map>

#include "stp/node/inbound/inbound_block.h"
#include "tests/stp/node/connection/connect_fixture.h"
#include "tests/stp/node/two_nodes.h"
#include "tests/stp/node/write_fixture.h"

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
  std::vector<VcId> walked;
  for (auto vc = a.node.vc_after(0); vc != kNoneId;) {
    walked.push_back(vc);
    VcInfo info{};
    ASSERT_EQ(a.node.vc_info(vc, info), 0);
    vc = a.node.vc_after(info.local_port);
  }
  EXPECT_TRUE((walked == std::vector{first, ca.id}) || (walked == std::vector{ca.id, first}));
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

// A user's budget limits the memory that tracks the data in flight to it (7.19).

namespace {

using wire::Op;
namespace flag = wire::flag;

struct Budget : WindowBudget {
  bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override {
    const auto sum = held[owner] - before + bytes;
    if (bytes > before && sum > limit) return false;
    held[owner] = sum;
    return true;
  }
  std::uint64_t limit = std::uint64_t{1} << 20;
  std::map<std::uint64_t, std::uint64_t> held;
};

struct HasBudget {
  Budget budget;
};

class Windows : public HasBudget, public Writing {
 protected:
  static constexpr std::uint32_t kWindow = 1'024;
  Windows()
      : Writing(NodeConfig{
            .mac = {}, .max_stu = 13, .vlan = {}, .attach_from = 512, .windows = &budget}) {}

  // All CTS grant the same buffer.
  SendEntry permission(std::uint32_t id, std::uint32_t b_num = 0) {
    auto e = cts(b_num, kTargetBufx, 0, kBufsize);
    e.header.d_id = id;
    e.header.s_id = 1'000 + id;
    return e;
  }
  SendEntry region(std::uint32_t id) {
    auto e = control(Op::kMemoryRegionAvailable);
    e.header.param = kWindow;
    e.header.mx = mx;
    e.header.bufx = kTargetBufx;
    e.header.set_t_len(kStu);
    e.header.d_id = id;
    e.header.s_id = 1'000 + id;
    return e;
  }
  SendEntry end(std::uint32_t id) {
    auto e = control(Op::kEnd);
    e.header.d_id = id;
    e.header.s_id = 1'000 + id;
    return e;
  }
  // Sends a request of B's user. Returns the headers that A's user gets.
  std::vector<wire::Header> say(const SendEntry& entry) {
    put(b, cb, entry);
    settle();
    std::vector<wire::Header> headers;
    while (const auto got = get(ca)) headers.push_back(got->header);
    return headers;
  }
  // Opens regions until there is no memory for more. The last one is refused.
  std::uint32_t fill_with_regions() {
    for (std::uint32_t id = 1; id < 100; ++id) {
      const auto headers = say(region(id));
      if (headers.size() != 1 || headers[0].has(flag::kReject)) return id;
    }
    return 0;
  }
};

// protocol: 7.19
TEST_F(Windows, a_region_without_memory_is_rejected_and_its_user_told) {
  const auto refused = fill_with_regions();
  ASSERT_GT(refused, 1U);
  EXPECT_LE(budget.held[0], budget.limit);
  EXPECT_EQ(cb.user.over_budget(), 1U);
  EXPECT_EQ(cb.user.refused(), 1U);
  EXPECT_EQ(b.count(Counter::kWindowsFull), 1U);
  const auto headers = say(region(refused));
  ASSERT_EQ(headers.size(), 1U);
  EXPECT_EQ(headers[0].op(), Op::kMemoryRegionAvailable);
  EXPECT_TRUE(headers[0].has(flag::kReject));
  EXPECT_EQ(headers[0].d_id, refused) << "the RMR that this answers";
  say(end(1));
  const auto again = say(region(refused));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_FALSE(again[0].has(flag::kReject)) << "another region has ended";
}

// protocol: 7.19
TEST_F(Windows, a_cts_without_memory_waits_until_some_comes_back) {
  budget.limit = 3 * 1'024;
  std::uint32_t id = 1;
  while (id < 100 && !say(permission(id)).empty()) ++id;
  ASSERT_GT(id, 2U);
  ASSERT_LT(id, 100U);
  EXPECT_EQ(b.count(Counter::kCtsHeld), 1U);
  EXPECT_EQ(cb.user.refused(), 0U);
  say(permission(id));  // a repeat of a CTS that already waits
  EXPECT_EQ(b.count(Counter::kCtsHeld), 1U);
  put(a, ca, data(permission(1).header, kStu));  // completes the Block, which frees its memory
  settle();
  const auto late = get(ca);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->header.d_id, id);
  EXPECT_EQ(cb.user.refused(), 0U);
}

// protocol: 7.19
TEST_F(Windows, what_is_remembered_of_transfers_that_are_over_makes_room) {
  budget.limit = 3 * 1'024;
  for (std::uint32_t id = 1; id < 40; ++id) {
    ASSERT_EQ(say(permission(id)).size(), 1U) << id;
    put(a, ca, data(permission(id).header, kStu));
    settle();
    ASSERT_TRUE(get(cb));
  }
  EXPECT_EQ(b.count(Counter::kCtsHeld), 0U);
}

// protocol: 7.19
TEST_F(Windows, memory_that_another_program_of_the_user_gives_back_is_noticed) {
  budget.limit = 3 * 1'024;
  std::uint32_t id = 1;
  while (id < 100 && !say(permission(id)).empty()) ++id;
  budget.limit *= 2;
  pass(50 * kMillisecond);
  ASSERT_TRUE(get(ca)) << "nothing of this Node's has ended";
}

TEST_F(Windows, all_of_it_comes_back) {
  fill_with_regions();
  for (std::uint32_t id = 200; id < 300; ++id) say(permission(id));
  EXPECT_GT(budget.held[0], 0U);
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  settle();
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  pass(kSecond);
  ASSERT_EQ(b.node.unmap(target_region), 0);
  std::uint64_t stocked = 0;
  while (b.node.unstock(listener, stocked)) continue;
  ASSERT_EQ(b.node.close_endpoint(listener), 0);
  settle();
  EXPECT_EQ(budget.held[0], 0U);
}

TEST_F(Windows, the_memory_counted_is_no_less_than_what_a_window_takes) {
  EXPECT_FALSE(say(region(1)).empty());
  EXPECT_GE(budget.held[0], kWindow * sizeof(InboundBlock));
}

}  // namespace

// What time makes due: whether silent peers are alive.

namespace {

class ExpiryTest : public Connect {};

// protocol: 5.23, 5.25
TEST_F(ExpiryTest, a_peer_that_vanishes_is_noticed_by_keep_alive) {
  connect();
  wire = [](const Frame&, bool) { return 0U; };
  pass(4'400 * kMillisecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  pass(200 * kMillisecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ETIMEDOUT);
  EXPECT_EQ(cb.user.state(), ChannelState::kFailed);
  EXPECT_EQ(a.count(Counter::kVcFailed), 1U);
  EXPECT_EQ(sent(Op::kRequestState), 2U * 5) << "five questions of either side, unanswered";
}

TEST_F(ExpiryTest, keep_alive_can_be_left_out) {
  connect({.keep_alive = false}, {.keep_alive = false});
  wire = [](const Frame&, bool) { return 0U; };
  pass(60 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(sent(Op::kRequestState), 0U);
}

TEST_F(ExpiryTest, an_idle_connection_lives_on) {
  connect();
  pass(60 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
}

}  // namespace
}  // namespace stp::test
