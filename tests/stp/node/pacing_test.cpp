// SPDX-License-Identifier: BSD-3-Clause
// CTS wait while too much data is in flight (section 10).

#include "stp/node/pacing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "tests/stp/node/some_ways.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Pacing : public Writing {
 protected:
  static constexpr std::size_t kBlock = 16'384;
  // `longest`: exponent of the link's longest STU. The connections have STUs of 2^kBufsize bytes.
  // `most`: Blocks that the limit may grow to.
  explicit Pacing(unsigned longest = kBufsize, unsigned most = 0)
      : Writing(NodeConfig{.mac = {},
                           .max_stu = longest,
                           .vlan = {},
                           .attach_from = 512,
                           .granted_limit = 2 * kBlock,
                           .granted_most = most * kBlock}) {}

  void offer(std::uint32_t i_id, std::uint64_t length) {
    auto e = rts(length);
    e.header.s_id = i_id;
    put(a, ca, e);
    settle();
    ASSERT_TRUE(get(cb));
  }
  void permit_block(std::uint32_t id, std::uint32_t b_num, std::uint32_t bufx) {
    auto e = cts(b_num, kTargetBufx + bufx, 0, 14);
    e.header.d_id = id;
    e.header.s_id = 1000 + id;
    put(b, cb, e);
    settle();
  }
  // From here on, the listener at B and new connections belong to another owner.
  void next_owner(std::uint64_t owner) {
    ASSERT_EQ(b.node.unlisten(listener), 0);
    EndpointConfig config;
    config.bufsize = kBufsize;
    ASSERT_EQ(b.node.open_endpoint(config, listener, owner), 0);
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    b.stock(listener);
    begin_connect();
    settle();
    accept();
    const auto to = target.all();
    ASSERT_EQ(b.node.map(listener, Direction::kReceive, kTargetBufx, {&to, 1}, target_region), 0);
    ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, mx), 0);
  }
};

// protocol: 10.8
TEST_F(Pacing, no_more_is_granted_than_may_be_on_its_way) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  EXPECT_EQ(b.count(Counter::kCtsHeld), 2U);
  const auto first = get(ca), second = get(ca);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  const auto third = get(ca);
  ASSERT_TRUE(third) << "a Block arrived: there is room for the next";
  EXPECT_EQ(third->header.b_num, 2U);
}

class GrowingLimit : public Pacing {
 protected:
  static constexpr unsigned kMost = 4, kBlocks = 40;
  GrowingLimit() : Pacing(kBufsize, kMost) {}

  void get_all() {
    while (const auto got = get(ca)) granted.push_back(got->header);
  }
  void begin() {
    offer(1, kBlocks * kBlock);
    for (std::uint32_t b_num = 0; b_num < kBlocks; ++b_num) permit_block(1, b_num, 4 * (b_num % 8));
    get_all();
  }
  // The next Block comes `delay` after it could.
  void send_block(Time delay) {
    now += delay;
    put(a, ca, data(granted.at(sent++), kBlock));
    settle();
    get_all();
  }
  [[nodiscard]] std::size_t on_the_way() const { return granted.size() - sent; }

  std::vector<wire::Header> granted;
  std::size_t sent = 0;
};

// protocol: 10.24
TEST_F(GrowingLimit, lets_held_cts_go_in_order_while_blocks_come_soon) {
  begin();
  ASSERT_EQ(on_the_way(), 2U);
  for (int i = 0; i < 20; ++i) send_block(10 * kMicrosecond);
  EXPECT_EQ(on_the_way(), kMost);
  for (std::uint32_t i = 0; i < granted.size(); ++i) EXPECT_EQ(granted[i].b_num, i);
}

// protocol: 10.24
TEST_F(GrowingLimit, does_not_grow_while_blocks_come_late) {
  begin();
  for (int i = 0; i < 20; ++i) {
    send_block(600 * kMicrosecond);
    ASSERT_LE(on_the_way(), 2U);
  }
}

// There is room for the last Block, which is short, but not for the one before it.
// protocol: 10.8
TEST_F(Pacing, a_cts_passes_none_of_its_transfer_that_is_held) {
  offer(1, 3 * kStu);
  offer(2, 2 * kBlock + kStu);
  permit_block(1, 0, 0);
  for (std::uint32_t b_num = 0; b_num < 3; ++b_num) permit_block(2, b_num, 4 + 4 * b_num);
  const auto first = get(ca), second = get(ca);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, 3 * kStu));
  settle();
  const auto third = get(ca);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->header.b_num, 1U);
}

class PacingOfPaths : public Writing {
 protected:
  static constexpr std::size_t kBlock = 4'096;
  PacingOfPaths()
      : Writing(NodeConfig{
            .mac = {}, .max_stu = kBufsize, .vlan = {}, .attach_from = 512, .routed = true}) {}
};

// The first window is 16 KiB. There is no limit of memory.
// protocol: 13.9
TEST_F(PacingOfPaths, no_more_is_granted_than_the_path_may_carry) {
  put(a, ca, rts(6 * kBlock));
  settle();
  ASSERT_TRUE(get(cb));
  for (std::uint32_t b_num = 0; b_num < 6; ++b_num)
    put(b, cb, cts(b_num, kTargetBufx + b_num, 0, 12));
  settle();
  EXPECT_EQ(b.count(Counter::kCtsHeld), 2U);
  const auto first = get(ca);
  ASSERT_TRUE(first);
  for (unsigned i = 1; i < 4; ++i) ASSERT_TRUE(get(ca));
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  const auto fifth = get(ca);
  ASSERT_TRUE(fifth) << "a Block arrived: there is room for the next";
  EXPECT_EQ(fifth->header.b_num, 4U);
}

// When two Blocks have come after 20 ms, six fill the window.
// protocol: 13.18
TEST_F(PacingOfPaths, the_window_of_a_long_path_is_granted_in_half_a_round_trip) {
  constexpr Time kTrip = 20 * kMillisecond;
  put(a, ca, rts(8 * kBlock));
  settle();
  ASSERT_TRUE(get(cb));
  for (std::uint32_t b_num = 0; b_num < 8; ++b_num)
    put(b, cb, cts(b_num, kTargetBufx + b_num, 0, 12));
  settle();
  std::vector<wire::Header> granted;
  const auto take = [&] {
    while (const auto got = get(ca)) granted.push_back(got->header);
    return granted.size();
  };
  ASSERT_EQ(take(), 4U);
  pass(kTrip);
  for (unsigned i = 0; i < 2; ++i) put(a, ca, data(granted[i], kBlock));
  settle();
  EXPECT_EQ(take(), 5U);
  pass(kTrip / 16);
  EXPECT_EQ(take(), 5U) << "there is room, but none is due";
  for (const auto granted_then : {6U, 7U, 8U}) {
    pass(kTrip / 16);
    EXPECT_EQ(take(), granted_then);
  }
}

// B's peers are A, whose way is shared with others, and C, whose way is not.
class PacingOfSomeWays : protected HasWays, public Writing {
 protected:
  static constexpr std::size_t kBlock = 4'096;
  static constexpr unsigned kBlocks = 6;
  static constexpr MacAddr kMacC{{2, 0, 0, 0, 0, 3}};
  PacingOfSomeWays()
      : Writing(NodeConfig{
            .mac = {}, .max_stu = kBufsize, .vlan = {}, .attach_from = 512, .ways = &ways}) {
    ways.shared = {kMacA};
    wire = [this](const Frame& frame, bool from_a) -> unsigned {
      if (from_a || parsed(frame).dst != kMacC) return 1;
      arrive(c, frame);
      return 0;
    };
  }

  void settle_all() {
    for (bool moved = true; moved;) {
      moved = false;
      settle();
      for (; const auto frame = take(c); moved = true) arrive(b, *frame);
    }
  }
  void connect_c() {
    constexpr EndpointConfig kConfig{.bufsize = kBufsize};
    b.stock(listener);
    of_c.memory = std::make_unique<ChannelMemory>(ChannelGeometry{kConfig.slots, kConfig.credits});
    ASSERT_EQ(c.node.connect(c.open(kConfig), kMacB, 3000, of_c.memory->data(), 1, of_c.id, now),
              0);
    of_c.user = UserChannel(of_c.memory->data());
    settle_all();
    ASSERT_EQ(b.node.accept(listener, to_c.id), 0);
    to_c.user = UserChannel(b.stocked.back()->data());
    ASSERT_EQ(b.node.alloc_mx(target_region, to_c.id, permit::kData, mx_of_c), 0);
  }
  // The Blocks that B grants at once to the peer at the other end of `ours`.
  unsigned granted_at_once(Host& peer, Connection& theirs, Connection& ours,
                           std::uint16_t of_peer) {
    put(peer, theirs, rts(kBlocks * kBlock));
    settle_all();
    EXPECT_TRUE(get(ours));
    for (std::uint32_t b_num = 0; b_num < kBlocks; ++b_num) {
      auto permission = cts(b_num, kTargetBufx + b_num, 0, 12);
      permission.header.mx = of_peer;
      put(b, ours, permission);
    }
    settle_all();
    unsigned granted = 0;
    while (get(theirs)) ++granted;
    return granted;
  }
  [[nodiscard]] bool yields(const Connection& at_b) const {
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(at_b.id, info), 0);
    return info.yields == true;
  }

  Host c{kMacC, 3, NodeConfig{.mac = {}, .max_stu = kBufsize, .vlan = {}, .attach_from = 512}};
  Connection of_c, to_c;  // C's end, and B's
  std::uint16_t mx_of_c = 0;
};

// protocol: 13.9
TEST_F(PacingOfSomeWays, only_peers_whose_way_is_shared_are_asked_for_what_a_path_may_carry) {
  connect_c();
  EXPECT_EQ(granted_at_once(c, of_c, to_c, mx_of_c), kBlocks);
  EXPECT_EQ(b.count(Counter::kCtsHeld), 0U);
  EXPECT_EQ(granted_at_once(a, ca, cb, mx), 4U) << "the first window is 16 KiB";
  EXPECT_EQ(b.count(Counter::kCtsHeld), 2U);
  EXPECT_TRUE(yields(cb));
  EXPECT_FALSE(yields(to_c));
}

TEST_F(PacingOfSomeWays, each_connection_asks_once) {
  connect_c();
  ASSERT_EQ(granted_at_once(c, of_c, to_c, mx_of_c), kBlocks);
  EXPECT_EQ(ways.asked_about(kMacA), 1);
  EXPECT_EQ(ways.asked_about(kMacC), 1);
}

class PartsOfBlocks : public PacingOfPaths {
 protected:
  static constexpr std::uint32_t kStus = 16;

  void SetUp() override { start({.recover = true}); }
  // B's user grants a Block of kStus STUs, and leaves it to its Node in which parts.
  void begin() {
    put(a, ca, rts(kStus * kStu));
    settle();
    ASSERT_TRUE(get(cb));
    auto whole = cts();
    whole.limited = kInParts;
    whole.length = kStus * kStu;
    put(b, cb, whole);
    settle();
  }
  // A's user sends `stus` STUs from F_Offset on.
  void send_part(const wire::Header& permission, std::uint32_t stus) {
    auto part = data(permission, stus * kStu);
    const auto first = permission.sync / kStu;
    part.header.bufx += first;
    part.bufx += first;
    part.limited = first + stus == kStus ? 0 : 1;
    put(a, ca, part);
  }
  // The STUs that a CTS names, the first of them at F_Offset.
  static std::uint32_t named_by(const ReceivedEntry& cts) {
    std::uint32_t stus = 0;
    const auto named = wire::MissingStus::decode(reinterpret_cast<const std::byte*>(cts.payload));
    while (named.contains(stus)) ++stus;
    return stus;
  }
};

// The first window holds four STUs.
// protocol: 10.17, 13.19
TEST_F(PartsOfBlocks, a_block_is_granted_in_parts_that_suit_the_path) {
  begin();
  std::uint32_t granted = 0, parts = 0;
  for (; granted != kStus; ++parts) {
    const auto got = get(ca);
    ASSERT_TRUE(got) << granted;
    ASSERT_EQ(got->payload_length, wire::kOptionSize);
    EXPECT_EQ(got->header.sync, granted * kStu) << "F_Offset: where the part begins";
    EXPECT_EQ(got->header.b_num, 0U);
    EXPECT_EQ(named_by(*got), 4U);
    if (parts == 0) {
      EXPECT_FALSE(get(ca)) << "the window is full";
      expect_dropped(stu(got->header, 4, 4 * kStu), Counter::kOutsideGrant);
    }
    send_part(got->header, named_by(*got));
    granted += named_by(*got);
    settle();
    EXPECT_EQ(cb.user.steps(), granted < 8 ? 0U : 1U)
        << "each eighth STU, until the Block is there";
  }
  EXPECT_EQ(parts, 4U);
  const auto done = get(cb);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->header.op(), Op::kData);
  EXPECT_TRUE(arrived(kStus * kStu));
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
}

// protocol: 10.23, 13.19
TEST_F(PartsOfBlocks, a_repeated_cts_names_nothing_that_has_not_been_granted) {
  begin();
  const auto first = get(ca);
  ASSERT_TRUE(first);
  send_part(first->header, 4);
  for (int i = 0; const auto frame = take(a); ++i)
    if (i != 2) arrive(b, *frame);
  settle();
  // Other parts may follow, because the sender is silent.
  std::uint32_t granted = 4;
  std::optional<ReceivedEntry> again;
  for (unsigned i = 0; i < 2'000 && !again; ++i) {
    while (const auto got = get(ca)) {
      if (got->header.op() != Op::kClearToSend) continue;
      if (got->header.sync == granted * kStu)
        granted += named_by(*got);
      else
        again = got;
    }
    pass(kMillisecond);
  }
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.sync, 2U * kStu);
  EXPECT_GT(granted, 4U);
  ASSERT_EQ(again->payload_length, wire::kOptionSize);
  const auto missing =
      wire::MissingStus::decode(reinterpret_cast<const std::byte*>(again->payload));
  for (std::uint32_t i = 2; i < 2 * kStus; ++i)
    EXPECT_EQ(missing.contains(i - 2), i != 3 && i < granted) << i;
}

// Another Transfer is granted between the third part of a Block and the fourth, while the last STU
// of the second part is on its way.
class PartsAndOthers : public PartsOfBlocks {
 protected:
  static constexpr std::uint32_t kOther = 20;  // its ids; and how far its STU is from the Block

  void SetUp() override {
    PartsOfBlocks::SetUp();
    begin();
    first_ = get(ca)->header;
    send(0, 4);
    settle();
    auto offer = rts(kStu);
    offer.header.s_id = kOther;
    put(a, ca, offer);
    settle();
    ASSERT_TRUE(get(cb));
    auto permission = cts(0, kTargetBufx + kOther);
    permission.header.d_id = permission.header.s_id = kOther;
    put(b, cb, permission);
    settle();
    for (std::uint32_t i = 4; i < 7; ++i) {
      send(i, 1);
      settle();
    }
  }
  // A's user sends STUs of the Block, whether it has read their CTS or not.
  void send(std::uint32_t from, std::uint32_t stus) {
    auto of = first_;
    of.sync = from * kStu;
    send_part(of, stus);
  }
  // A's user reads the CTS that have come.
  std::vector<wire::Header> read() {
    std::vector<wire::Header> all;
    while (const auto got = get(ca))
      if (got->header.op() == Op::kClearToSend) all.push_back(got->header);
    return all;
  }
  void expect_order(const std::vector<wire::Header>& permissions) {
    ASSERT_EQ(permissions.size(), 4U);
    EXPECT_EQ(permissions[0].sync, 4 * kStu);
    EXPECT_EQ(permissions[1].sync, 8 * kStu);
    EXPECT_EQ(permissions[2].d_id, kOther);
    EXPECT_EQ(permissions[3].sync, 12 * kStu);
  }

 private:
  wire::Header first_;  // the CTS for the first part
};

// What comes belongs to a part that was granted before, and so tells nothing of the others.
// protocol: 10.4, 10.21, 13.19
TEST_F(PartsAndOthers, an_early_part_overtakes_nothing_that_was_granted_after_it) {
  send(7, 1);
  settle();
  pass(100 * kMillisecond);
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U) << "nobody has read the CTS";
  expect_order(read());
}

// A part is shorter than its Block.
// protocol: 10.22, 13.19
TEST_F(PartsAndOthers, a_block_that_ends_with_a_short_part_passes_no_more_than_that) {
  const auto permissions = read();
  expect_order(permissions);
  send(7, kStus - 7);
  settle();
  ASSERT_TRUE(get(cb));
  pass(kMillisecond);
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U) << "four STUs may have overtaken it on their way";
  put(a, ca, data(permissions[2], kStu));
  settle();
  EXPECT_TRUE(get(cb));
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
}

// Nobody knows how long the path is before something has come.
// protocol: 13.9
TEST_F(PacingOfPaths, what_a_new_path_holds_is_not_written_off_in_its_first_round_trip) {
  put(a, ca, rts(6 * kBlock));
  settle();
  ASSERT_TRUE(get(cb));
  for (std::uint32_t b_num = 0; b_num < 6; ++b_num)
    put(b, cb, cts(b_num, kTargetBufx + b_num, 0, 12));
  settle();
  const auto granted = [&] {
    unsigned count = 0;
    while (get(ca)) ++count;
    return count;
  };
  EXPECT_EQ(granted(), 4U) << "the first window";
  pass(500 * kMillisecond);
  EXPECT_EQ(granted(), 0U);
  pass(kSecond);
  EXPECT_EQ(granted(), 2U) << "their sender is silent";
}

class LossOnPaths : public PacingOfPaths {
 protected:
  static constexpr std::uint32_t kBlocks = 60;

  void begin(bool recover) {
    start({.recover = recover});
    put(a, ca, rts(kBlocks * kBlock));
    settle();
    ASSERT_TRUE(get(cb));
    for (std::uint32_t b_num = 0; b_num < kBlocks; ++b_num) permit_block(b_num);
  }
  void permit_block(std::uint32_t b_num) {
    put(b, cb, cts(b_num, kTargetBufx + b_num % kBuffers, 0, 12));
    settle();
    while (const auto got = get(ca)) granted.push_back(got->header);
  }
  void send_blocks(std::uint32_t first, std::uint32_t end) {
    for (; first < end; ++first) {
      now += kMicrosecond;
      put(a, ca, data(granted.at(first), kBlock));
      settle();
      while (const auto got = get(ca)) granted.push_back(got->header);
    }
  }
  // CTS that A has got if `arrived` Blocks have arrived and the window has grown with each.
  static std::size_t without_loss(std::size_t arrived) { return arrived + 4 + arrived; }

  std::vector<wire::Header> granted;

 private:
  void SetUp() override {}
};

// A path may reorder datagrams. What is asked for again is what counts as lost.
// protocol: 13.12
TEST_F(LossOnPaths, a_block_that_is_late_leaves_the_window_until_it_is_asked_for) {
  constexpr std::uint32_t kLate = 12;
  begin(true);
  send_blocks(0, kLate);
  send_blocks(kLate + 1, kLate + 8);
  EXPECT_EQ(granted.size(), without_loss(kLate + 7));
  send_blocks(kLate + 8, kLate + 10);
  const auto after = granted.size();
  EXPECT_LE(after, without_loss(kLate + 8) + 1);
  EXPECT_EQ(std::count_if(granted.begin(), granted.end(), [](auto& h) { return h.b_num == kLate; }),
            2);
  send_blocks(kLate + 10, kLate + 12);
  EXPECT_EQ(granted.size(), after) << "more is outstanding than the window has now";
}

// protocol: 13.12
TEST_F(LossOnPaths, a_program_that_repeats_a_cts_has_lost_a_block_too) {
  begin(false);
  send_blocks(0, 12);
  EXPECT_EQ(granted.size(), without_loss(12));
  permit_block(13);
  EXPECT_EQ(granted.size(), without_loss(12) + 1);
  send_blocks(12, 15);
  EXPECT_EQ(granted.size(), without_loss(12) + 1);
}

// protocol: 13.13
TEST_F(PacingOfPaths, programs_are_told_which_blocks_suit_the_path) {
  EXPECT_EQ(cb.user.path_block(), 14U) << "four STUs while nothing is known";
}

class PacingOfShortStus : public Pacing {
 protected:
  PacingOfShortStus() : Pacing(kBufsize + 1) {}
};

// A receive queue has room for a number of frames.
// protocol: 10.8
TEST_F(PacingOfShortStus, short_stus_count_as_the_longest) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  EXPECT_EQ(b.count(Counter::kCtsHeld), 3U) << "one Block of short STUs is the whole limit";
  const auto first = get(ca);
  ASSERT_TRUE(first);
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  const auto second = get(ca);
  ASSERT_TRUE(second) << "a Block arrived: there is room for the next";
  EXPECT_EQ(second->header.b_num, 1U);
  EXPECT_FALSE(get(ca));
}

// protocol: 10.9
TEST_F(Pacing, the_transfer_nearest_to_its_end_goes_first) {
  offer(1, 5 * kBlock);
  offer(2, kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  const auto first = get(ca);
  ASSERT_TRUE(first && get(ca));
  permit_block(1, 2, 8);
  permit_block(1, 3, 12);
  put(a, ca, data(first->header, kBlock));
  settle();
  ASSERT_TRUE(get(ca));
  permit_block(2, 0, 16);
  const auto held = b.count(Counter::kCtsHeld);
  EXPECT_EQ(held, 3U);
  auto next = cts(1, kTargetBufx + 4, 0, 14).header;
  next.d_id = 1;
  next.s_id = 1001;
  put(a, ca, data(next, kBlock));
  settle();
  const auto following = get(ca);
  ASSERT_TRUE(following);
  EXPECT_EQ(following->header.d_id, 2U);
}

TEST_F(Pacing, closing_gives_back_what_was_granted) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  settle();
  Connection next;
  b.stock(listener);
  begin_connect();
  settle();
  accept();
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, mx), 0);
  offer(1, 2 * kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  EXPECT_TRUE(get(ca));
  EXPECT_TRUE(get(ca));
}

// protocol: 10.9
TEST_F(Pacing, what_one_owner_never_gets_does_not_hold_up_another) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  const auto idle = std::move(ca), debtor = std::move(cb);
  next_owner(2);
  offer(1, 2 * kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  const auto first = get(ca);
  ASSERT_TRUE(first) << "nothing of its own is outstanding";
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  EXPECT_TRUE(get(ca)) << "and so it is again, though the bound is used up";
}

// protocol: 10.12
TEST_F(Pacing, a_silent_sender_holds_up_nobody_for_long) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 3; ++b_num) permit_block(1, b_num, 4 * b_num);
  const auto first = get(ca);
  ASSERT_TRUE(first && get(ca));
  pass(19 * kMillisecond);
  EXPECT_FALSE(get(ca));
  pass(2 * kMillisecond);
  EXPECT_TRUE(get(ca));
  // The sender was only slow: when it sends, its outstanding bytes count again.
  put(a, ca, data(first->header, kBlock));
  settle();
  permit_block(1, 3, 12);
  EXPECT_FALSE(get(ca));
}

class FloodOfGrants : public Pacing {
 protected:
  static constexpr unsigned kOfOwner = 4'096, kOfVc = 128, kInAll = 32'768, kMore = 20;

  void begin_another() {
    others_.push_back(std::move(ca));
    others_.push_back(std::move(cb));
    b.stock(listener);
    begin_connect();
    settle();
    accept();
    ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, mx), 0);
    blocks_ = 0;
  }
  // B's program asks for so many more Blocks, of one Transfer after the other. Returns how many of
  // the CTS have arrived at A.
  unsigned ask(unsigned count) {
    constexpr std::uint32_t kOfTransfer = 512;
    unsigned arrived = 0;
    for (; count > 0; --count, ++blocks_) {
      const auto id = 1 + blocks_ / kOfTransfer, b_num = blocks_ % kOfTransfer;
      if (b_num == 0) offer(id, kOfTransfer * kBlock);
      permit_block(id, b_num, 0);
      while (get(ca)) ++arrived;
    }
    return arrived;
  }

 private:
  std::uint32_t blocks_ = 0;  // of the connection
  std::vector<Connection> others_;
};

// protocol: 10.8, 10.9
TEST_F(FloodOfGrants, of_a_program_is_held_up_to_a_bound_and_holds_up_no_other_program) {
  EXPECT_EQ(ask(2), 2U);
  EXPECT_EQ(ask(kOfOwner), 0U);
  EXPECT_EQ(b.count(Counter::kCtsHeld), kOfOwner);
  EXPECT_EQ(ask(kMore), kMore) << "the others are sent";
  EXPECT_EQ(b.count(Counter::kCtsHeld), kOfOwner);
  const auto idle = std::move(ca), flooder = std::move(cb);
  next_owner(2);
  offer(1, 2 * kBlock);
  permit_block(1, 0, 0);
  EXPECT_TRUE(get(ca)) << "nothing of its own is outstanding";
  permit_block(1, 1, 0);
  EXPECT_FALSE(get(ca)) << "and it has places of its own";
  EXPECT_EQ(b.count(Counter::kCtsHeld), kOfOwner + 1);
}

// protocol: 10.8
TEST_F(FloodOfGrants, on_many_connections_is_held_for_each_of_them_up_to_a_bound_for_all) {
  EXPECT_EQ(ask(2 + kOfOwner), 2U);
  for (unsigned held = kOfOwner; held < kInAll; held += kOfVc) {
    begin_another();
    ASSERT_EQ(ask(kOfVc), 0U) << held;
    ASSERT_EQ(ask(1), 1U) << held;
  }
  EXPECT_EQ(b.count(Counter::kCtsHeld), kInAll);
  begin_another();
  EXPECT_EQ(ask(kMore), kMore);
  EXPECT_EQ(b.count(Counter::kCtsHeld), kInAll);
}

// A sender that waited for a core sends all at once: it must not be more than twice the limit.
// protocol: 10.12
TEST_F(Pacing, silent_senders_are_excused_for_the_limit_until_a_second_has_passed) {
  offer(1, 6 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 6; ++b_num) permit_block(1, b_num, 4 * b_num);
  ASSERT_TRUE(get(ca) && get(ca));
  pass(21 * kMillisecond);
  ASSERT_TRUE(get(ca) && get(ca)) << "as much again, because the sender is silent";
  for (int i = 0; i < 10; ++i) pass(21 * kMillisecond);
  EXPECT_FALSE(get(ca)) << "it sent nothing of that either, and may still send all";
  for (int i = 0; i < 40; ++i) pass(21 * kMillisecond);
  EXPECT_TRUE(get(ca) && get(ca)) << "it will not send any more";
}

}  // namespace
}  // namespace stp::test

namespace stp::test::held_grants_test {
namespace {

using Transfer = HeldGrants::Transfer;
using Fit = HeldGrants::Fit;

class HeldGrantsTest : public ::testing::Test {
 protected:
  HeldGrants held;
  std::set<VcId> without_credit;
  std::uint64_t room = ~std::uint64_t{0};

  void push(const Transfer& transfer, std::uint64_t owner, std::uint32_t b_num,
            std::uint64_t remaining, std::uint64_t bytes = 1) {
    SendEntry entry{};
    entry.header.b_num = b_num;
    held.push(transfer, owner,
              {.entry = entry, .demand = {.bytes = bytes, .remaining = remaining, .memory = 0}});
  }
  std::optional<Transfer> choose(bool by_age = false) {
    return held.choose(by_age, [&](VcId vc, const Inbound::Demand& demand) {
      if (without_credit.contains(vc)) return Fit::kNoRoom;
      return demand.bytes <= room ? Fit::kFits : Fit::kTooMuch;
    });
  }
};

constexpr Transfer kA{1, 10}, kB{2, 20}, kC{2, 21};

TEST_F(HeldGrantsTest, those_of_one_transfer_keep_their_order) {
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(choose(), std::nullopt);
  push(kA, 1, 0, 300);
  push(kA, 1, 1, 200);
  push(kA, 1, 2, 100);
  EXPECT_TRUE(held.contains(kA, 1));
  EXPECT_FALSE(held.contains(kA, 3));
  EXPECT_FALSE(held.contains(kB, 1));
  for (std::uint32_t b = 0; b < 3; ++b) {
    ASSERT_EQ(choose(), kA);
    EXPECT_EQ(held.pop(kA).entry.header.b_num, b);
    EXPECT_FALSE(held.contains(kA, b));
  }
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(choose(), std::nullopt);
}

TEST_F(HeldGrantsTest, the_one_that_lacks_least_goes_first_or_the_one_that_waited_longest) {
  push(kA, 1, 0, 300);
  push(kB, 2, 0, 200);
  push(kC, 2, 0, 100);
  EXPECT_EQ(choose(false), kC);
  EXPECT_EQ(choose(true), kA);
  held.pop(kC);
  EXPECT_EQ(choose(false), kB);
  held.pop(kA);
  EXPECT_EQ(choose(true), kB);
}

// What counts is the first CTS of a Transfer, and the first of its connection.
TEST_F(HeldGrantsTest, the_next_of_a_transfer_takes_the_place_of_the_one_that_went) {
  push(kA, 1, 0, 100);
  push(kA, 1, 1, 400);
  push(kB, 1, 0, 200);
  push(kC, 1, 0, 300);
  ASSERT_EQ(choose(), kA);
  held.pop(kA);
  EXPECT_EQ(choose(), kB);
  EXPECT_EQ(choose(true), kA) << "its second CTS came before those of the others";
  held.pop(kB);
  EXPECT_EQ(choose(), kC);
}

TEST_F(HeldGrantsTest, one_that_needs_too_much_lets_another_owner_go) {
  room = 10;
  push(kA, 1, 0, 100, 50);
  push(kB, 2, 0, 900, 5);
  EXPECT_EQ(choose(), kB);
  EXPECT_EQ(choose(true), kB);
  held.pop(kB);
  EXPECT_EQ(choose(), std::nullopt);
  room = 50;
  EXPECT_EQ(choose(), kA);
}

TEST_F(HeldGrantsTest, a_connection_without_credit_waits_until_it_has_some) {
  push(kA, 1, 0, 100);
  push(kB, 1, 0, 200);
  without_credit = {1};
  EXPECT_EQ(choose(), kB) << "of the same owner";
  without_credit.clear();
  EXPECT_EQ(choose(), kB) << "nobody has said that it has credit";
  push(kA, 1, 1, 50);  // more of the one that is parked
  EXPECT_EQ(choose(), kB);
  held.unpark(1);
  held.unpark(1);
  held.unpark(77);
  EXPECT_EQ(choose(), kA);
  without_credit = {1, 2};
  EXPECT_EQ(choose(), std::nullopt);
  held.unpark(2);
  without_credit.clear();
  EXPECT_EQ(choose(), kB);
}

TEST_F(HeldGrantsTest, those_of_what_has_ended_go_at_once_and_their_memory_in_slices) {
  for (std::uint32_t b = 0; b < 10; ++b) {
    push(kA, 1, b, 100);
    push(kB, 2, b, 200);
    push(kC, 2, b, 300);
  }
  EXPECT_EQ(held.drop(kB), 10U);
  EXPECT_EQ(held.drop(kB), 0U);
  EXPECT_FALSE(held.contains(kB, 0));
  EXPECT_TRUE(held.contains(kC, 0));
  EXPECT_EQ(held.drop(VcId{1}), 10U);
  EXPECT_EQ(held.drop(VcId{1}), 0U);
  EXPECT_FALSE(held.contains(kA, 0));
  EXPECT_EQ(choose(), kC);
  EXPECT_TRUE(held.untidy());
  std::size_t freed = 0;
  while (held.untidy()) {
    const auto done = held.tidy(4);
    ASSERT_LE(done, 4U);
    freed += done;
    ASSERT_LE(freed, 20U);
  }
  EXPECT_EQ(freed, 20U);
  EXPECT_EQ(held.tidy(4), 0U);
  EXPECT_EQ(held.drop(VcId{2}), 10U);
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldGrantsTest, a_connection_that_is_parked_can_end) {
  push(kA, 1, 0, 100);
  push(kB, 2, 0, 200);
  without_credit = {1};
  ASSERT_EQ(choose(), kB);
  EXPECT_EQ(held.drop(kA), 1U);
  push(kA, 1, 0, 100);  // a new one is not parked
  without_credit.clear();
  EXPECT_EQ(choose(), kA);
}

// The work of a choice depends on the number of owners only.
TEST_F(HeldGrantsTest, a_choice_takes_a_step_for_each_owner_however_many_are_held) {
  if (!work::kMetered) GTEST_SKIP() << "this build does not meter work";
  for (std::uint32_t i = 0; i < 300; ++i) push({1 + i % 100, i}, i % 100 % 3, 0, 1'000 + i);
  work::Hold const hold("a choice");
  ASSERT_TRUE(choose());
  EXPECT_LE(work::counted(), 3U);
}

}  // namespace
}  // namespace stp::test::held_grants_test
