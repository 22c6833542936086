// SPDX-License-Identifier: BSD-3-Clause
// Nothing that one user or one peer does makes a call of the Node long. Counts the work of the
// worst cases (stp/base/work_meter.h), and checks that later turns do the rest.
#include "stp/base/work_meter.h"

#include <atomic>
#include <thread>

#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

constexpr std::uint64_t kCall = 1'024;   // operations of a call with little to do
constexpr std::uint64_t kSlice = 4'096;  // of a call that frees ended objects

class BoundedWork : public Writing {
 protected:
  BoundedWork() : BoundedWork(0) {}
  explicit BoundedWork(std::uint64_t granted_limit)
      : Writing(NodeConfig{.mac = {},
                           .max_stu = 13,
                           .vlan = {},
                           .attach_from = 512,
                           .granted_limit = granted_limit}) {}
  void SetUp() override {
    if (!work::kMetered) GTEST_SKIP() << "this build has no work meter";
    EndpointConfig config;
    config.slots = config.credits = 8'192;
    start(config);
  }
  // The work of `call`.
  template <typename Call>
  static std::uint64_t cost(Call&& call) {
    work::Hold const hold("a call");
    call();
    return work::counted();
  }
  // Makes turns of `host` until nothing is left to do at once. Checks that none is long. Returns
  // their number.
  unsigned turns(Host& host) {
    unsigned count = 0;
    for (; host.node.next_deadline() <= now; ++count) {
      EXPECT_LE(cost([&] { host.node.expire(now); }), kSlice);
      if (count == 1'000) ADD_FAILURE() << "it never comes to an end";
      if (count == 1'000) break;
    }
    return count;
  }
  // Grants Blocks of one STU, all at the same place, with numbers from 0.
  void grant_blocks(std::uint32_t count) {
    for (std::uint32_t b_num = 0; b_num < count; ++b_num) {
      put(b, cb, cts(b_num, kTargetBufx, 0, kBufsize));
      if (b_num % 64 == 63) settle();
      while (get(ca)) continue;
    }
    settle();
    while (get(ca)) continue;
  }
  wire::Header block(std::uint32_t b_num) {
    auto permission = cts(b_num, kTargetBufx, 0, kBufsize).header;
    return stu(permission, 0, 0, wire::flag::kLast | wire::flag::kSilent);
  }
};

// protocol: 7.5
TEST_F(BoundedWork, a_region_with_all_mx_is_unmapped_at_once) {
  std::uint16_t each = 0;
  while (b.node.alloc_mx(target_region, kNoneId, permit::kAll, each) == 0) continue;
  auto permission = grant(kStu);
  permission.mx = each;  // the last one, which is freed last

  EXPECT_LE(cost([&] { ASSERT_EQ(b.node.unmap(target_region), 0); }), kCall);
  expect_dropped(stu(permission, 0, 0), Counter::kBadMx);
  EXPECT_EQ(b.node.free_mx(listener, each), -ERANGE);
  EXPECT_TRUE(has_event(b, Event::Kind::kRegionGone)) << "its user may have the memory back";
  // The old names do not reach another region that is now mapped there.
  const auto to = target.all();
  RegionId next = kNoneId;
  ASSERT_EQ(b.node.map(listener, Direction::kReceive, kTargetBufx, {&to, 1}, next), 0);
  expect_dropped(stu(permission, 0, 0), Counter::kBadMx);

  EXPECT_GT(turns(b), 10U);
  unsigned names = 0;
  while (b.node.alloc_mx(next, kNoneId, permit::kAll, each) == 0) ++names;
  EXPECT_EQ(names, 0xffffU);  // Mx 0 names nothing
}

TEST_F(BoundedWork, a_connection_ends_without_a_look_at_all_others) {
  // 60,000 Mx of another region, 2,000 connections of the same endpoint that are ready to send.
  std::uint16_t each = 0;
  for (int i = 0; i < 60'000; ++i)
    ASSERT_EQ(b.node.alloc_mx(target_region, kNoneId, permit::kAll, each), 0);
  EndpointConfig config;
  config.bufsize = kBufsize;
  config.slots = config.credits = 1;
  const auto endpoint = b.open(config);
  ChannelMemory memory({1, 1});  // shared by all, because none is read
  std::vector<VcId> all(2'000);
  for (auto& id : all) {
    ASSERT_EQ(b.node.connect(endpoint, kMacA, 4000, memory.data(), 0, id, now), 0);
    b.node.kick(id);
  }
  for (const auto id : all) ASSERT_LE(cost([&] { b.node.close(id, true, now); }), kCall);
  EXPECT_LE(cost([&] { b.node.close(cb.id, true, now); }), kCall);
}

TEST_F(BoundedWork, a_connection_with_all_its_own_mx_ends_in_slices) {
  std::uint16_t each = 0;
  while (b.node.alloc_mx(target_region, cb.id, permit::kAll, each) == 0) continue;
  EXPECT_LE(cost([&] { b.node.close(cb.id, true, now); }), kCall);
  EXPECT_GT(turns(b), 10U);
  unsigned names = 0;
  while (b.node.alloc_mx(target_region, kNoneId, permit::kAll, each) == 0) ++names;
  EXPECT_EQ(names, 0xffffU);  // Mx 0 names nothing
}

// protocol: 7.12
TEST_F(BoundedWork, the_end_of_a_transfer_with_all_its_blocks_open_is_one_short_frame) {
  grant_blocks(4'096);
  auto end = block(0);
  end.op_flags = wire::op_flags(wire::Op::kEnd);
  end.d_id = kRId;
  EXPECT_LE(cost([&] { inject(b, kMacA, end); }), kCall);
  expect_dropped(block(7), Counter::kNoGrant);
  EXPECT_GE(turns(b), 3U);
  // Its id and all places are free at once.
  grant_blocks(1);
  inject_stu(block(0), 0, kStu);
  EXPECT_TRUE(arrived(kStu));
}

TEST_F(BoundedWork, a_connection_with_all_its_blocks_open_ends_in_slices) {
  grant_blocks(4'096);
  EXPECT_LE(cost([&] { b.node.close(cb.id, true, now); }), kCall);
  EXPECT_GE(turns(b), 3U);
}

// protocol: 9.6
TEST_F(BoundedWork, blocks_that_come_in_the_worst_order_cost_a_few_steps_each) {
  constexpr std::uint32_t kBlocks = 4'096;
  grant_blocks(kBlocks);
  for (std::uint32_t b_num = kBlocks; b_num-- > 0;)
    ASSERT_LE(cost([&] { inject_stu(block(b_num), 0, kStu); }), 256U) << b_num;
  EXPECT_EQ(b.count(Counter::kRxBlocks), kBlocks);
  inject_stu(block(kBlocks - 1), 0, kStu);
  EXPECT_EQ(b.count(Counter::kDuplicateBlock), 1U);
}

// The queue of one user is full of requests that are refused. Another user's request is sent in the
// same call.
// protocol: 6.3
TEST_F(BoundedWork, refused_requests_use_up_the_turn_of_who_makes_them) {
  constexpr std::uint32_t kRefused = 8'192;
  const auto bad = control(wire::Op::kRequestConnection);
  for (std::uint32_t i = 0; i < kRefused; ++i) ASSERT_TRUE(cb.user.send(bad));
  // The other user: another owner, whose request comes last.
  EndpointConfig config;
  config.bufsize = kBufsize;
  config.connectionless = true;
  EndpointId endpoint = kNoneId;
  ASSERT_EQ(b.node.open_endpoint(config, endpoint, 2), 0);
  Connection honest;
  honest.memory = std::make_unique<ChannelMemory>(ChannelGeometry{config.slots, config.credits});
  ASSERT_EQ(b.node.open_port(endpoint, honest.memory->data(), 5, honest.id, now), 0);
  honest.user = UserChannel(honest.memory->data());
  auto request = control(wire::Op::kRequestState);
  request.destination_mac = kMacA.to_u64();
  request.header.d_port = 7;
  b.node.kick(cb.id);
  put(b, honest, request);

  std::vector<Frame> room(32, Frame(b.node.frame_room()));
  std::vector<TxFrame> frames(32);
  for (std::size_t i = 0; i < room.size(); ++i) frames[i].head = room[i].data();
  std::size_t sent = 0;
  EXPECT_LE(cost([&] { sent = b.node.transmit(frames, now); }), kCall);
  EXPECT_EQ(sent, 1U);
  EXPECT_GT(cb.user.refused(), 0U);
  EXPECT_LE(cb.user.refused(), 256U);
  // The Node still has work to do at once, and does all of it.
  EXPECT_LE(b.node.next_deadline(), now);
  for (int turn = 0; turn < 1'000 && b.node.next_deadline() <= now; ++turn) settle();
  EXPECT_EQ(cb.user.refused(), kRefused);
}

// A user fills its queue again as fast as it is emptied.
// protocol: 5.17
TEST_F(BoundedWork, the_queue_of_a_connection_that_ends_is_emptied_once) {
  std::atomic<bool> over{false};
  std::thread hostile([&] {
    const auto bad = control(wire::Op::kRequestConnection);
    while (!over) cb.user.send(bad);
  });
  while (cb.user.refused() == 0) {
    b.node.kick(cb.id);
    take(b);
  }
  EXPECT_LE(cost([&] { b.node.close(cb.id, true, now); }), kCall);
  over = true;
  hostile.join();
  VcInfo info{};
  ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
  EXPECT_EQ(info.state, VcState::kClosing);
}

TEST_F(BoundedWork, a_full_queue_of_a_connection_that_ends_is_refused_in_one_step) {
  constexpr std::uint32_t kWaiting = 8'192;
  for (std::uint32_t i = 0; i < kWaiting; ++i)
    ASSERT_TRUE(cb.user.send(control(wire::Op::kRequestState)));
  EXPECT_LE(cost([&] { b.node.close(cb.id, true, now); }), kCall);
  EXPECT_EQ(cb.user.refused(), kWaiting);
  EXPECT_TRUE(cb.user.done(cb.user.sent()));
}

// protocol: 5.21
TEST_F(BoundedWork, timers_of_many_connections_are_a_few_at_a_time) {
  EndpointConfig config;
  config.slots = config.credits = 1;
  const auto endpoint = b.open(config);
  ChannelMemory memory({1, 1});
  constexpr unsigned kMany = 1'000;
  for (unsigned i = 0; i < kMany; ++i) {
    VcId id = kNoneId;
    const auto peer = MacAddr::from_u64(0x020000010000 + i);
    ASSERT_EQ(b.node.connect(endpoint, peer, 4000, memory.data(), 0, id, now), 0);
  }
  while (take(b)) continue;
  now += 15 * kMillisecond;
  EXPECT_LE(cost([&] { b.node.expire(now); }), kCall);
  EXPECT_LT(b.count(Counter::kRetries), kMany / 2);
  while (take(b)) continue;
  EXPECT_LE(b.node.next_deadline(), now) << "the others are due";
  for (int turn = 0; turn < 100 && b.node.next_deadline() <= now; ++turn) {
    b.node.expire(now);
    while (take(b)) continue;
  }
  EXPECT_EQ(b.count(Counter::kRetries), kMany);
}

// CTS of many Transfers wait, because their connection has no credit.
class HeldWork : public BoundedWork {
 protected:
  HeldWork() : BoundedWork(kStu) {}
};

// protocol: 10.9
TEST_F(HeldWork, choosing_between_many_held_cts_does_not_look_at_each) {
  constexpr std::uint32_t kHeld = 2'000;
  for (std::uint32_t i = 0; i <= kHeld; ++i) {
    auto e = cts(0, kTargetBufx, 0, kBufsize);
    e.header.d_id = 100 + i;
    e.header.s_id = 100'000 + i;
    put(b, cb, e);
    if (i % 64 == 63) settle();
  }
  settle();
  ASSERT_EQ(b.count(Counter::kCtsHeld), kHeld);
  // When granted data arrives, the next CTS is sent.
  auto first = block(0);
  first.d_id = 100'000;
  Frame head(b.node.frame_room());
  TxFrame tx{.head = head.data(), .attached = {}, .token = {}};
  EXPECT_LE(cost([&] {
              inject_stu(first, 0, kStu);
              EXPECT_EQ(b.node.transmit({&tx, 1}, now), 1U);
            }),
            kCall);
  EXPECT_LE(cost([&] { b.node.close(cb.id, true, now); }), kCall);
  EXPECT_GE(turns(b), 1U);
}

TEST(WorkMeterDeathTest, who_does_too_much_is_ended_with_a_message) {
  if (!work::kMetered) GTEST_SKIP() << "this build has no work meter";
  work::count("what is done outside of a hold", ~std::uint64_t{0});
  const auto too_much = [] {
    work::Hold const hold("a turn of this test");
    for (std::uint64_t i = 0; i <= work::kBound; ++i) work::count("rounds of a loop");
  };
  EXPECT_DEATH(too_much(), "a turn of this test does too much: 65537 operations.*rounds of a loop");
}

}  // namespace
}  // namespace stp::test
