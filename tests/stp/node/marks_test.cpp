// SPDX-License-Identifier: BSD-3-Clause
// Marks of routers (ECN): which STUs may be marked, and what a mark does (docs/protocol.md, 13.22).
#include <gtest/gtest.h>

#include "tests/stp/node/some_ways.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test::marks_test {
namespace {

using wire::Op;

NodeConfig config_of(SharedWays& ways, bool marks, unsigned max_stu) {
  return {.mac = {},
          .max_stu = max_stu,
          .vlan = {},
          .attach_from = 512,
          .ways = &ways,
          .marks = marks,
          .padded_requests = true};
}

// A writes to B.
class Marks : protected HasWays, public Writing {
 protected:
  static constexpr std::size_t kBlock = 4'096;
  explicit Marks(bool a_marks = true, bool b_marks = true)
      : Writing(config_of(ways, a_marks, kBufsize), config_of(ways, b_marks, kBufsize)) {
    ways.shared = {kMacA, kMacB};
  }

  // B grants `blocks` of kBlock bytes of the Transfer of A.
  void permit_blocks(std::uint32_t blocks) {
    put(a, ca, rts(blocks * kBlock));
    settle();
    ASSERT_TRUE(get(cb));
    for (std::uint32_t b_num = 0; b_num < blocks; ++b_num)
      put(b, cb, cts(b_num, kTargetBufx + b_num, 0, 12));
    settle();
  }
  // The next frame that A sends for `entry`.
  Frame frame_for(SendEntry entry, bool may_be_marked) {
    entry.may_be_marked = may_be_marked ? 1 : 0;
    put(a, ca, entry);
    const auto frame = take(a);
    EXPECT_TRUE(frame);
    return frame.value_or(Frame{});
  }
  void arrive_marked(Host& to, const Frame& frame) {
    const LoopedFrame marked{.head = frame, .attached = {}, .marked = true};
    to.node.receive_apart({&marked, 1}, now);
    settle();
  }
  bool b_yields() {
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(cb.id, info), 0);
    return info.yields.value_or(false);
  }
};

// protocol: 13.22
TEST_F(Marks, stus_of_granted_blocks_may_be_marked_and_nothing_else) {
  const auto permission = grant(2 * kBlock);
  frame_for(data(permission, 2 * kBlock), true);
  EXPECT_TRUE(a.may_be_marked);
  EXPECT_TRUE(take(a));
  EXPECT_TRUE(a.may_be_marked) << "its second STU";
  frame_for(data(permission, kBlock), true);
  EXPECT_TRUE(a.may_be_marked) << "a Block of one STU";
  frame_for(data(permission, 100), false);
  EXPECT_FALSE(a.may_be_marked) << "a Put";
  frame_for(data(permission, 2 * kBlock), false);
  EXPECT_FALSE(a.may_be_marked);
  frame_for(rts(kBlock), false);
  EXPECT_FALSE(a.may_be_marked);
}

class PeerWithoutMarks : public Marks {
 protected:
  PeerWithoutMarks() : Marks(true, false) {}
};

// protocol: 13.22
TEST_F(PeerWithoutMarks, gets_nothing_that_may_be_marked) {
  frame_for(data(grant(kBlock), kBlock), true);
  EXPECT_FALSE(a.may_be_marked);
}

TEST_F(PeerWithoutMarks, takes_no_notice_of_one) {
  arrive_marked(b, frame_for(data(grant(kBlock), kBlock), true));
  EXPECT_EQ(b.count(Counter::kRxStus), 1U);
  EXPECT_EQ(b.count(Counter::kRxMarked), 0U);
}

class WithoutMarks : public Marks {
 protected:
  WithoutMarks() : Marks(false, true) {}
};

// protocol: 13.22
TEST_F(WithoutMarks, a_link_sends_nothing_that_may_be_marked) {
  frame_for(data(grant(kBlock), kBlock), true);
  EXPECT_FALSE(a.may_be_marked);
}

class MarksNotNeeded : public Marks {
 protected:
  MarksNotNeeded() { ways.shared = {kMacA}; }
};

// Telling them costs each call that receives a little.
TEST_F(MarksNotNeeded, are_not_told) {
  EXPECT_FALSE(ways.tells_marks) << "A asked, and takes its way to B for its own";
  EXPECT_TRUE(b_yields());
  frame_for(data(grant(kBlock), kBlock), true);
  EXPECT_FALSE(a.may_be_marked);
}

class OnlyTheRequesterSeesARouter : public Marks {
 protected:
  OnlyTheRequesterSeesARouter() { ways.shared = {kMacB}; }
};

// A router that translates addresses looks like a neighbour to the host behind it.
// protocol: 13.22
TEST_F(OnlyTheRequesterSeesARouter, so_the_other_one_yields_too) {
  EXPECT_TRUE(b_yields());
}

// The first window is 16 KiB.
// protocol: 13.22
TEST_F(Marks, one_makes_the_window_smaller_as_a_loss_does) {
  permit_blocks(6);
  const auto first = get(ca), second = get(ca);
  ASSERT_TRUE(first && second && get(ca) && get(ca));
  arrive_marked(b, frame_for(data(first->header, kBlock), true));
  EXPECT_EQ(b.count(Counter::kRxMarked), 1U);
  EXPECT_FALSE(get(ca)) << "three Blocks are on their way, and the window holds no fourth";
  put(a, ca, data(second->header, kBlock));
  settle();
  EXPECT_EQ(b.count(Counter::kRxMarked), 1U) << "that one was not marked";
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
}

// protocol: 13.22
TEST_F(Marks, what_nobody_has_granted_makes_no_window_smaller) {
  auto mra = control(Op::kMemoryRegionAvailable);
  mra.header.param = 4;
  mra.header.mx = mx;
  mra.header.bufx = kTargetBufx;
  mra.header.set_t_len(kBlock);
  mra.header.s_id = kRId;
  put(b, cb, mra);
  settle();
  auto region = get(ca);
  ASSERT_TRUE(region);
  region->header.b_num = 0;
  arrive_marked(b, frame_for(data(region->header, 100), true));
  EXPECT_EQ(b.count(Counter::kRxStus), 1U);
  EXPECT_EQ(b.count(Counter::kRxMarked), 0U);
}

class MarksOnOwnWays : public Marks {
 protected:
  MarksOnOwnWays() { ways.shared = {}; }
};

// protocol: 13.22
TEST_F(MarksOnOwnWays, show_that_these_are_shared) {
  permit_blocks(6);
  EXPECT_FALSE(b_yields());
  const auto first = get(ca);
  for (unsigned others = 0; others < 5; ++others) ASSERT_TRUE(get(ca));
  ASSERT_TRUE(first);
  arrive_marked(b, frame_for(data(first->header, kBlock), true));
  EXPECT_TRUE(b_yields());
  EXPECT_EQ(b.count(Counter::kRxMarked), 1U);
}

}  // namespace
}  // namespace stp::test::marks_test
