// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/asks.h"

#include "stp/transfer/clock.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test::asks_in_test {
namespace {

constexpr std::uint32_t kTheirId = 900;
constexpr Landing kLanding{3, {2, 50}, 1'000};

class AsksInTest : public Parts {
 protected:
  AsksIn asks{config, ids, outbox, completions, endings, finished};

  // A request of the peer. Returns its number for the user.
  std::uint32_t region(std::uint32_t i_id = kTheirId) {
    asks.on_region_request(
        received(wire::RequestMemoryRegion{.b_win = 8, .t_len = 1'000, .i_id = i_id}));
    const auto told = completion();
    EXPECT_TRUE(told && told->kind == Kind::kRegionRequest && told->length == 1'000);
    return told ? told->request : 0;
  }
  std::uint32_t read(std::uint32_t i_id = kTheirId) {
    asks.on_read_request({.t_len = 100, .i_id = i_id});
    const auto told = completion();
    EXPECT_TRUE(told && told->kind == Kind::kReadRequest && told->length == 100);
    return told ? told->request : 0;
  }
};

// protocol: 9.9
TEST_F(AsksInTest, tells_of_a_read_once_and_answers_each_repeat) {
  const auto request = read();
  EXPECT_EQ(next_is<wire::RequestAnswer>().r_id, request);
  asks.on_read_request({.t_len = 100, .i_id = kTheirId});
  EXPECT_EQ(next_is<wire::RequestAnswer>().r_id, request);
  EXPECT_FALSE(completion());
  std::uint32_t i_id = 0;
  EXPECT_EQ(asks.take_read(request, 99, i_id), -EINVAL);
  EXPECT_EQ(asks.take_read(request, 100, i_id), 0);
  EXPECT_EQ(i_id, kTheirId);
  EXPECT_EQ(asks.take_read(request, 100, i_id), -ECANCELED);
  asks.on_read_request({.t_len = 100, .i_id = kTheirId});
  EXPECT_FALSE(completion()) << "a late repeat";
}

// A Node keeps a bit for each STU of the region and Block. protocol: 7.14
TEST_F(AsksInTest, a_long_region_has_as_many_blocks_under_way_as_its_node_can_track) {
  constexpr std::uint64_t kMiB = 1 << 20;
  std::uint32_t i_id = kTheirId;
  const auto window = [&](std::uint64_t length, unsigned stu_log2) -> unsigned {
    config.receive_stu_log2 = stu_log2;
    asks.on_region_request(
        received(wire::RequestMemoryRegion{.b_win = 128, .t_len = length, .i_id = ++i_id}));
    EXPECT_EQ(asks.serve_region(completion()->request, {3, {}, length}, 1'024, {}), 0);
    return next_is<wire::MemoryRegionAvailable>().b_win;
  };
  EXPECT_EQ(window(1, 10), 128U);
  EXPECT_EQ(window(kMiB, 10), 128U);
  EXPECT_EQ(window(kMiB, 8), 128U) << "as before";
  EXPECT_EQ(window(2 * kMiB, 10), 64U);
  EXPECT_EQ(window(3 * kMiB, 10), 32U) << "the Node rounds up to a power of two";
  EXPECT_EQ(window(64 * kMiB, 10), 16U);
  EXPECT_EQ(window(8 * kMiB, 13), 128U);
  EXPECT_EQ(window(16 * kMiB, 13), 64U);
  EXPECT_EQ(window(std::uint64_t{1} << 40, 13), 16U);
}

// protocol: 9.29
TEST_F(AsksInTest, a_shorter_region_will_do_if_the_request_says_so) {
  const auto wants = [&](std::uint32_t i_id, std::uint32_t least, std::uint32_t name = 1) {
    auto entry = received(wire::RequestMemoryRegion{.b_win = 8, .t_len = 1'000, .i_id = i_id});
    entry.payload_length = wire::kOptionSize;
    auto* const words = reinterpret_cast<std::byte*>(entry.payload);
    wire::store32(words, name);
    wire::store32(words + 4, least);
    asks.on_region_request(entry);
    const auto told = completion();
    EXPECT_TRUE(told && told->length == 1'000);
    return *told;
  };
  const auto told = wants(40, 300);
  EXPECT_EQ(told.offset, 300U);
  EXPECT_EQ(asks.serve_region(told.request, {3, {2, 50}, 299}, 4, {}), -EINVAL);
  EXPECT_EQ(asks.serve_region(told.request, {3, {2, 50}, 300}, 4, {}), 0);
  EXPECT_EQ(next_is<wire::MemoryRegionAvailable>().t_len, 300U);
  EXPECT_EQ(wants(41, 0).offset, 1'000U);
  EXPECT_EQ(wants(42, 1'001).offset, 1'000U) << "more than is asked for";
  EXPECT_EQ(wants(43, 300, 0).offset, 1'000U) << "that is no name's";
}

TEST_F(AsksInTest, opens_a_region_and_answers_each_repeat_alike) {
  const auto request = region();
  EXPECT_FALSE(next()) << "the user has not decided";
  EXPECT_EQ(asks.serve_region(request, {3, {2, 50}, 999}, 4, {}), -EINVAL) << "too short";
  EXPECT_EQ(asks.serve_region(request, kLanding, 0, {}), -EINVAL);
  EXPECT_EQ(asks.serve_region(request, kLanding, 4, {}), 0);
  EXPECT_EQ(asks.serve_region(request, kLanding, 4, {}), -ECANCELED);
  const auto mra = next_is<wire::MemoryRegionAvailable>();
  EXPECT_EQ(mra.i_id, kTheirId);
  EXPECT_EQ(mra.b_win, 4U);
  EXPECT_EQ(mra.r_offset, 50U);
  EXPECT_EQ(asks.find(kTheirId), mra.r_id);
  asks.on_region_request(
      received(wire::RequestMemoryRegion{.b_win = 8, .t_len = 1'000, .i_id = kTheirId}));
  EXPECT_EQ(next_is<wire::MemoryRegionAvailable>(), mra);
  EXPECT_FALSE(completion());
}

// protocol: 9.17
TEST_F(AsksInTest, refuses_now_and_when_the_request_is_repeated) {
  EXPECT_EQ(asks.refuse(region()), 0);
  EXPECT_EQ(next()->op(), Op::kMemoryRegionAvailable);
  asks.on_region_request(received(wire::RequestMemoryRegion{.t_len = 1'000, .i_id = kTheirId}));
  const auto again = next();
  ASSERT_TRUE(again && again->op() == Op::kMemoryRegionAvailable);
  EXPECT_TRUE(again->has(wire::flag::kReject));
  EXPECT_FALSE(completion());
  EXPECT_EQ(asks.refuse(12'345), -ECANCELED);
}

TEST_F(AsksInTest, keeps_a_bounded_number_of_requests) {
  for (std::uint32_t i = 0; i < 1'024; ++i) read(i);
  while (next()) {
  }
  asks.on_read_request({.t_len = 100, .i_id = kTheirId * 10});
  EXPECT_FALSE(completion());
  EXPECT_TRUE(next()->has(wire::flag::kReject));
}

TEST_F(AsksInTest, tells_where_a_put_that_wakes_has_arrived) {
  const auto request = region();
  asks.serve_region(request, kLanding, 4, {});
  const auto mra = next_is<wire::MemoryRegionAvailable>();
  auto data = received(wire::Data{.r_mx = 3, .r_bufx = 2, .r_offset = 150, .r_id = mra.r_id});
  data.length = 8;
  asks.on_put(data);
  const auto told = completion();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Kind::kArrived);
  EXPECT_EQ(told->request, request);
  EXPECT_EQ(told->offset, 100U);
  EXPECT_EQ(told->length, 8U);
  asks.on_put(received(wire::Data{.r_id = mra.r_id + 1}));
  EXPECT_FALSE(completion()) << "it is of no region";
}

// protocol: 9.18
TEST_F(AsksInTest, gives_the_memory_back_when_the_node_has_taken_the_answer_to_the_end) {
  const auto request = region();
  asks.serve_region(request, kLanding, 4, {});
  EXPECT_FALSE(asks.on_end({.r_id = request + 1, .i_id = kTheirId}));
  outbox.add(wire::to_header(wire::EndAck{}));
  EXPECT_TRUE(asks.on_end({.r_id = wire::kNoId, .i_id = kTheirId}));
  EXPECT_FALSE(completion());
  node_takes();
  const auto told = completion();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Kind::kEnded);
  EXPECT_EQ(told->request, request);
  EXPECT_FALSE(asks.find(kTheirId));
}

TEST_F(AsksInTest, forgets_a_request_that_the_peer_takes_back) {
  const auto request = region();
  EXPECT_FALSE(asks.on_end({.r_id = wire::kNoId, .i_id = kTheirId}));
  EXPECT_EQ(asks.serve_region(request, kLanding, 4, {}), -ECANCELED);
}

// protocol: 9.18
TEST_F(AsksInTest, closes_a_region) {
  const auto request = region();
  EXPECT_EQ(asks.close_region(request), -EINVAL) << "it is not open";
  asks.serve_region(request, kLanding, 4, {});
  next();
  EXPECT_EQ(asks.close_region(request), 0);
  const auto end = next_is<wire::End>();
  EXPECT_EQ(end.r_id, kTheirId);
  EXPECT_EQ(end.i_id, request);
  EXPECT_TRUE(finished.is_over(kTheirId, Op::kMemoryRegionAvailable));
}

}  // namespace
}  // namespace stp::test::asks_in_test

namespace stp::test::asks_out_test {
namespace {

constexpr std::uint32_t kTheirId = 900;

class AsksOutTest : public Parts {
 protected:
  Puts puts{config, clock, outbox, completions, repeats, endings};
  AsksOut asks{clock, ids, outbox, completions, repeats, endings, puts};

  std::uint32_t read(Context context = 1) {
    EXPECT_EQ(asks.read(context, {3, {2, 0}, 100}), 0);
    return next_is<wire::RequestToReceive>().i_id;
  }
  std::uint32_t region(Context context = 1) {
    EXPECT_EQ(asks.request_region(context, 1'000, 4, 0), 0);
    return next_is<wire::RequestMemoryRegion>().i_id;
  }
  void open(std::uint32_t i_id, std::uint64_t length = 1'000, std::uint16_t flags = 0) {
    asks.on_region(received(
        wire::MemoryRegionAvailable{
            .b_win = 4, .r_mx = 3, .t_len = length, .i_id = i_id, .r_id = kTheirId},
        flags));
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    asks.expire();
    repeats.end_round();
  }
};

// protocol: 9.9
TEST_F(AsksOutTest, a_read_goes_on_as_a_transfer_of_the_same_length) {
  const auto i_id = read();
  EXPECT_TRUE(asks.on_answer({.i_id = i_id}, false));
  EXPECT_FALSE(asks.take_read(i_id, 99));
  EXPECT_FALSE(asks.take_read(i_id + 1, 100));
  const auto found = asks.take_read(i_id, 100);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->context, 1U);
  EXPECT_EQ(found->landing.at.bufx, 2U);
  EXPECT_EQ(asks.outstanding(), 0U);
  EXPECT_FALSE(completion());
}

// protocol: 9.17
TEST_F(AsksOutTest, a_read_may_be_refused) {
  const auto i_id = read();
  EXPECT_FALSE(asks.on_answer({.i_id = i_id + 1}, true)) << "it answers something else";
  EXPECT_TRUE(asks.on_answer({.i_id = i_id}, true));
  EXPECT_EQ(completion()->status, -ECONNREFUSED);
}

TEST_F(AsksOutTest, a_region_is_open_for_puts) {
  open(region());
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, 0);
  EXPECT_EQ(done->region.r_id, kTheirId);
  EXPECT_EQ(done->region.window, 4U);
  EXPECT_TRUE(puts.is_open(kTheirId));
}

// protocol: 9.1, 9.17
TEST_F(AsksOutTest, a_region_may_be_refused_or_be_none) {
  open(region(1), 1'000, wire::flag::kReject);
  open(region(2), 999);
  EXPECT_FALSE(puts.is_open(kTheirId));
  open(region(3));
  open(region(4));
  std::vector<int> statuses;
  while (const auto c = completion()) statuses.push_back(c->status);
  EXPECT_EQ(statuses, (std::vector<int>{-ECONNREFUSED, -ECONNREFUSED, 0, -ECONNREFUSED}))
      << "refused, too short, open, an id that is in use";
}

TEST_F(AsksOutTest, takes_no_answer_to_a_read_for_a_region) {
  open(read());
  EXPECT_FALSE(asks.take_read(region(), 1'000));
  EXPECT_EQ(asks.outstanding(), 2U);
}

TEST_F(AsksOutTest, refuses_what_cannot_be) {
  EXPECT_EQ(asks.read(1, {3, {2, 0}, 0}), -EINVAL);
  EXPECT_EQ(asks.request_region(1, 0, 4, 0), -EINVAL);
  EXPECT_EQ(asks.request_region(1, 100, 0, 0), -EINVAL);
  EXPECT_EQ(asks.request_region(1, 100, kMaxPutWindow + 1, 0), -EINVAL);
  EXPECT_EQ(asks.outstanding(), 0U);
}

// protocol: 9.18
TEST_F(AsksOutTest, takes_a_request_back) {
  const auto i_id = region();
  EXPECT_FALSE(asks.cancel(2));
  EXPECT_TRUE(asks.cancel(1));
  const auto end = next_is<wire::End>();
  EXPECT_EQ(end.i_id, i_id);
  EXPECT_EQ(end.r_id, wire::kNoId) << "the peer has not told its id";
  endings.on_end_ack({.i_id = i_id});
  EXPECT_EQ(completion()->kind, Kind::kRegion);
}

// protocol: 10.11
TEST_F(AsksOutTest, repeats_what_was_seen_and_gives_up_after_a_while) {
  read();
  unsigned repeated = 0;
  const auto begun = clock.now();
  while (asks.outstanding() > 0 && clock.now() < begun + 200 * kSecond) {
    while (const auto header = next()) {
      repeated += header->op() == Op::kRequestToReceive;
      if (header->op() != Op::kRequestState) continue;
      taken();
      repeats.on_slots(
          {.r_slots = kSlots, .sync = wire::decode_as<wire::RequestState>(*header).sync});
    }
    taken();
    pass(clock.deadline() - clock.now());
    expire();
  }
  EXPECT_EQ(asks.outstanding(), 0U);
  EXPECT_GE(repeated, 5U);
  EXPECT_GE(clock.now(), begun + kUserPatience);
}

TEST_F(AsksOutTest, completes_when_the_connection_ends) {
  read(1);
  region(2);
  asks.fail(-ENOTCONN);
  EXPECT_EQ(completion()->kind, Kind::kRead);
  EXPECT_EQ(completion()->kind, Kind::kRegion);
}

}  // namespace
}  // namespace stp::test::asks_out_test
