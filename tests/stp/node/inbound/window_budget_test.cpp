// SPDX-License-Identifier: BSD-3-Clause
// A user's budget limits the memory that tracks the data in flight to it (7.19).
#include <map>

#include "stp/node/inbound/inbound_block.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
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
}  // namespace stp::test
