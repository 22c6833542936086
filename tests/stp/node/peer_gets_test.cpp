// SPDX-License-Identifier: BSD-3-Clause
// Get and FetchOp: the Responder's Node executes them, FetchOps exactly once (section 9).
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Function;
using wire::Op;
namespace flag = wire::flag;

// B opens a region that A reads and works on; A's answers land in `landing`.
class PeerGetsTest : public Writing {
 protected:
  static constexpr std::uint32_t kLandingBufx = 3, kRegionId = 22;
  Buffers landing{kBufsize, 4};
  RegionId landing_region = kNoneId;
  std::uint16_t landing_mx = 0, region_mx = 0;

  void SetUp() override {
    Writing::SetUp();
    const auto piece = landing.all();
    ASSERT_EQ(
        a.node.map(endpoint_a, Direction::kReceive, kLandingBufx, {&piece, 1}, landing_region), 0);
    ASSERT_EQ(a.node.alloc_mx(landing_region, kNoneId, permit::kData, landing_mx), 0);
    ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kAll, region_mx), 0);
    open_region(region_mx);
  }
  void open_region(std::uint16_t with, std::uint64_t t_len = 32'768,
                   std::uint32_t bufx = kTargetBufx, std::uint32_t id = kRegionId) {
    auto mra = control(Op::kMemoryRegionAvailable);
    mra.header.param = 1;
    mra.header.mx = with;
    mra.header.bufx = bufx;
    mra.header.set_t_len(t_len);
    mra.header.d_id = id - 1;
    mra.header.s_id = id;
    put(b, cb, mra);
    settle();
    ASSERT_TRUE(get(ca));
  }
  SendEntry request(Function function, std::uint32_t g_num, std::uint32_t at,
                    std::uint16_t length = 8) {
    auto e = control(Op::kGet, static_cast<std::uint16_t>(static_cast<unsigned>(function)
                                                          << wire::kFunctionShift));
    e.header.param = length;
    e.header.mx = landing_mx;
    e.header.bufx = kTargetBufx + at / 4096;
    e.header.offset = at % 4096;
    e.header.sync = kLandingBufx;
    e.header.b_num = 8 * (g_num % 64);
    e.header.d_id = kRegionId;
    e.header.s_id = g_num;
    return e;
  }
  static void operands(SendEntry& e, std::uint64_t operand, std::uint64_t compare) {
    e.payload_length = wire::kOptionSize;
    for (int i = 0; i < 8; ++i) {
      e.payload[i] = static_cast<std::uint8_t>(operand >> (56 - 8 * i));
      e.payload[8 + i] = static_cast<std::uint8_t>(compare >> (56 - 8 * i));
    }
  }
  std::uint64_t& cell(std::uint32_t at = 0) {
    return *reinterpret_cast<std::uint64_t*>(target.data() + at);
  }
  std::uint64_t answer(std::uint32_t g_num) {
    return *reinterpret_cast<std::uint64_t*>(landing.data() + 8 * (g_num % 64));
  }
  // Executes a FetchOp and returns the old value.
  std::uint64_t fetch(const SendEntry& e) {
    put(a, ca, e);
    settle();
    const auto header = get(ca);
    EXPECT_TRUE(header && header->header.op() == Op::kData);
    EXPECT_EQ(header->header.b_num, e.header.s_id);
    return answer(e.header.s_id);
  }
};

// protocol: 9.12, 9.13
TEST_F(PeerGetsTest, a_get_brings_the_peers_bytes) {
  std::memcpy(target.data(), source.data(), target.size());
  auto e = request(Function::kGet, 1, 5'000, 9'000);
  e.header.b_num = 100;
  put(a, ca, e);
  settle();
  ASSERT_TRUE(get(ca));
  EXPECT_EQ(0, std::memcmp(landing.data() + 100, source.data() + 5'000, 9'000));
  EXPECT_EQ(landing.data()[99], std::byte{0});
  EXPECT_EQ(landing.data()[9'100], std::byte{0});
}

// protocol: 3.6, 3.13, 7.17, 9.14
TEST_F(PeerGetsTest, every_function_does_what_it_says_and_tells_what_was_before) {
  cell() = 40;
  EXPECT_EQ(fetch(request(Function::kFetchIncrement, 1, 0)), 40U);
  EXPECT_EQ(fetch(request(Function::kFetchDecrement, 2, 0)), 41U);
  auto add = request(Function::kFetchAdd, 3, 0);
  operands(add, 1'000'000'000'000, 0);
  EXPECT_EQ(fetch(add), 40U);
  EXPECT_EQ(cell(), 1'000'000'000'040U);
  auto swap = request(Function::kCompareAndSwap, 4, 0);
  operands(swap, 7, 5);
  EXPECT_EQ(fetch(swap), 1'000'000'000'040U) << "not 5: nothing happens";
  EXPECT_EQ(cell(), 1'000'000'000'040U);
  swap = request(Function::kCompareAndSwap, 5, 0);
  operands(swap, 7, 1'000'000'000'040);
  fetch(swap);
  EXPECT_EQ(cell(), 7U);
  EXPECT_EQ(fetch(request(Function::kFetchClear, 6, 0)), 7U);
  EXPECT_EQ(cell(), 0U);
}

// A peer that repeats a FetchOp with a larger length must not read the bytes behind the result.
// protocol: 9.15
TEST_F(PeerGetsTest, a_repeated_fetch_op_that_speaks_of_more_bytes_gets_the_same_eight) {
  put(a, ca, request(Function::kFetchIncrement, 1, 0));
  auto repeat = take(a);
  ASSERT_TRUE(repeat);
  arrive(b, *repeat);
  const auto answered = take(b);
  ASSERT_TRUE(answered);
  constexpr std::size_t kParam = wire::kEthernetSize + 2;
  (*repeat)[kParam] = std::byte{0x10};  // 4 KiB
  (*repeat)[kParam + 1] = std::byte{0};
  arrive(b, *repeat);
  EXPECT_EQ(take(b), answered);
}

// protocol: 7.15, 7.17, 9.17
TEST_F(PeerGetsTest, what_the_region_does_not_hold_or_permit_is_refused) {
  const auto refused = [&](const SendEntry& e) {
    const auto before = b.count(Counter::kGetRefused);
    put(a, ca, e);
    settle();
    EXPECT_EQ(b.count(Counter::kGetRefused), before + 1);
    const auto header = get(ca);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->header.op(), Op::kGet);
    EXPECT_TRUE(header->header.has(flag::kReject));
  };
  refused(request(Function::kGet, 1, 32'768 - 4));
  refused(request(Function::kFetchIncrement, 2, 4));
  auto e = request(Function::kGet, 3, 0);
  e.header.d_id = 1234;
  refused(e);
  std::uint16_t data_only = 0;
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, data_only), 0);
  open_region(data_only);
  refused(request(Function::kGet, 4, 0));
  refused(request(Function::kFetchIncrement, 5, 0));
  EXPECT_TRUE(untouched());
}

// Buffers that are neighbours by Bufx lie apart in memory, which is not aligned as the buffers are.
class TwoPieces : public PeerGetsTest {
 protected:
  static constexpr std::uint32_t kBufx = 0x40, kId = 24, kEnd = 4'096;
  static constexpr auto kOther = std::byte{0x11};  // what belongs to nobody's grant
  alignas(4'096) std::byte arena[32'768] = {};
  const MutableBytes pieces[2] = {{arena + 4, 2 * kEnd}, {arena + 16'388, kEnd}};
  std::uint16_t pieces_mx = 0;

  void SetUp() override {
    PeerGetsTest::SetUp();
    RegionId region = kNoneId;
    ASSERT_EQ(b.node.map(listener, Direction::kReceive, kBufx, pieces, region), 0);
    ASSERT_EQ(b.node.alloc_mx(region, cb.id, permit::kAll, pieces_mx), 0);
    open_region(pieces_mx, 3 * kEnd, kBufx, kId);
    std::memset(arena + 4 + 2 * kEnd, 0x11, 8);
  }
  // At byte `at` of the region.
  SendEntry request_at(Function function, std::uint32_t g_num, std::uint32_t at,
                       std::uint16_t length = 8) {
    auto e = request(function, g_num, 0, length);
    e.header.bufx = kBufx + at / kEnd;
    e.header.offset = at % kEnd;
    e.header.d_id = kId;
    return e;
  }
  void expect_refused(const SendEntry& e) {
    put(a, ca, e);
    settle();
    const auto header = get(ca);
    ASSERT_TRUE(header);
    EXPECT_TRUE(header->header.has(flag::kReject));
  }
};

// protocol: 7.17
TEST_F(TwoPieces, a_fetch_op_that_leaves_the_first_is_refused) {
  auto swap = request_at(Function::kCompareAndSwap, 1, 2 * kEnd - 4);
  std::uint64_t before;
  std::memcpy(&before, arena + 2 * kEnd, sizeof before);
  operands(swap, 0x4141'4141'4141'4141, before);
  expect_refused(swap);
  EXPECT_EQ(answer(1), 0U);
  for (unsigned at = 0; at < 8; ++at) EXPECT_EQ(arena[4 + 2 * kEnd + at], kOther) << at;
}

// protocol: 7.17
TEST_F(TwoPieces, a_fetch_op_may_lie_in_two_buffers_of_one) {
  put(a, ca, request_at(Function::kFetchIncrement, 1, kEnd - 4));
  settle();
  const auto header = get(ca);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header.op(), Op::kData);
  EXPECT_EQ(arena[kEnd], std::byte{1});
}

TEST_F(TwoPieces, a_get_brings_the_bytes_of_both) {
  arena[4 + 2 * kEnd - 1] = std::byte{0x21};
  arena[16'388] = std::byte{0x22};
  auto e = request_at(Function::kGet, 1, 2 * kEnd - 1, 2);
  put(a, ca, e);
  settle();
  ASSERT_TRUE(get(ca));
  EXPECT_EQ(landing.data()[8], std::byte{0x21});
  EXPECT_EQ(landing.data()[9], std::byte{0x22});
}

// A user opened more than its Mx names, and other memory of the user lies at the next Bufx.
// protocol: 7.15
TEST_F(TwoPieces, no_get_and_no_fetch_op_leaves_the_mx) {
  RegionId next = kNoneId;
  const MutableBytes private_memory(arena + 24'576, kEnd);
  ASSERT_EQ(b.node.map(listener, Direction::kReceive, kBufx + 3, {&private_memory, 1}, next), 0);
  open_region(pieces_mx, 4 * kEnd, kBufx, kId);
  expect_refused(request_at(Function::kGet, 1, 3 * kEnd - 1, 2));
  expect_refused(request_at(Function::kGet, 2, 3 * kEnd, 8));
  expect_refused(request_at(Function::kFetchIncrement, 3, 3 * kEnd - 4));
}

TEST_F(PeerGetsTest, a_repeat_that_leaves_after_the_answer_came_does_not_open_the_landing_again) {
  put(a, ca, request(Function::kGet, 1, 0, 64));
  put(a, ca, request(Function::kGet, 1, 0, 64));
  const auto first = take(a);
  ASSERT_TRUE(first);
  arrive(b, *first);
  const auto brought = take(b);
  ASSERT_TRUE(brought);
  arrive(a, *brought);
  ASSERT_TRUE(get(ca));
  EXPECT_FALSE(take(a)) << "nobody waits for it any more";
  landing.data()[8] = std::byte{99};
  arrive(a, *brought);
  EXPECT_EQ(landing.data()[8], std::byte{99});
}

TEST_F(PeerGetsTest, an_answer_nobody_asked_for_is_not_placed) {
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kData, flag::kLast);
  h.d_port = info.local_port;
  h.s_port = info.remote_port;
  h.d_key = info.local_key;
  h.mx = landing_mx;
  h.bufx = kLandingBufx;
  h.d_id = kRegionId;
  h.b_num = 9;
  inject(a, kMacB, h, Bytes(source.data() + 8, 64));
  EXPECT_EQ(a.count(Counter::kNoGrant), 1U);
  EXPECT_EQ(landing.data()[0], std::byte{0});
}

// An answer waits to be sent, or is partly sent, while its memory is taken back.
class TakenBack : public PeerGetsTest {
 protected:
  static constexpr std::uint16_t kLength = 9'000;
  Buffers other{kBufsize, kBuffers};
  RegionId other_region = kNoneId;
  std::optional<Frame> asked;

  void SetUp() override {
    PeerGetsTest::SetUp();
    std::memcpy(target.data(), source.data(), target.size());
    std::memset(other.data(), 0x5a, other.size());
    put(a, ca, request(Function::kGet, 1, 0, kLength));
    asked = take(a);
    ASSERT_TRUE(asked);
    arrive(b, *asked);
  }
  // Maps other memory where the region was.
  void replace_region() {
    ASSERT_EQ(b.node.unmap(target_region), 0);
    const auto piece = other.all();
    ASSERT_EQ(b.node.map(listener, Direction::kReceive, kTargetBufx, {&piece, 1}, other_region), 0);
  }
  void expect_refused() {
    arrive(b, *asked);  // it is repeated
    settle();
    const auto header = get(ca);
    ASSERT_TRUE(header);
    EXPECT_TRUE(header->header.has(flag::kReject));
  }
};

// protocol: 7.5
TEST_F(TakenBack, a_waiting_answer_ends_with_the_mx_of_its_region) {
  ASSERT_EQ(b.node.free_mx(listener, region_mx), 0);
  EXPECT_FALSE(take(b)) << "it has not begun";
  EXPECT_EQ(b.count(Counter::kGetRefused), 1U);
  expect_refused();
}

// protocol: 7.5
TEST_F(TakenBack, a_waiting_answer_does_not_read_what_is_mapped_there_later) {
  replace_region();
  EXPECT_FALSE(take(b));
  expect_refused();
}

// protocol: 7.5
TEST_F(TakenBack, an_answer_that_is_partly_sent_stops_when_the_memory_is_replaced) {
  const auto first = take(b);
  ASSERT_TRUE(first);
  EXPECT_EQ(parsed(*first).header.op(), Op::kData);
  replace_region();
  EXPECT_FALSE(take(b));
  EXPECT_EQ(cb.user.refused(), 0U) << "its user did not ask for anything";
  arrive(a, *first);
  expect_refused();
  EXPECT_EQ(landing.data()[4'096], std::byte{0});
}

TEST_F(TakenBack, what_the_user_sends_goes_on_behind_a_dropped_answer) {
  ASSERT_EQ(b.node.free_mx(listener, region_mx), 0);
  put(b, cb, control(Op::kNoOperation));
  const auto next = take(b);
  ASSERT_TRUE(next);
  EXPECT_EQ(parsed(*next).header.op(), Op::kNoOperation);
}

// protocol: 7.16
TEST_F(PeerGetsTest, a_get_cannot_name_a_landing_that_is_not_the_users) {
  auto e = request(Function::kGet, 1, 0, 9'000);
  e.header.sync = kLandingBufx + 3;
  put(a, ca, e);
  settle();
  EXPECT_EQ(ca.user.refused(), 1U);
  e = request(Function::kGet, 1, 0);
  e.header.mx = 500;
  put(a, ca, e);
  settle();
  EXPECT_EQ(ca.user.refused(), 2U);
}

}  // namespace
}  // namespace stp::test
