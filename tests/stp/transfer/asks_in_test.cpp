// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/asks_in.h"

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
