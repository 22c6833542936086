// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>

#include "tools/perf/measure.h"

namespace stp::perf {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Histogram, tells_percentiles_within_half_a_percent) {
  Histogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(microseconds(i));
  EXPECT_EQ(histogram.count(), 1000U);
  EXPECT_NEAR(histogram.percentile(50).count(), 500, 2.5);
  EXPECT_NEAR(histogram.percentile(99).count(), 990, 5);
  EXPECT_NEAR(histogram.percentile(99.9).count(), 999, 5);
  EXPECT_NEAR(histogram.mean().count(), 500.5, 0.1);
}

TEST(Histogram, knows_the_ends_exactly_however_far_out) {
  Histogram histogram;
  histogram.add(nanoseconds(1));
  histogram.add(microseconds(3));
  histogram.add(seconds(1000));
  EXPECT_EQ(histogram.min(), nanoseconds(1));
  EXPECT_EQ(histogram.max(), seconds(1000));
  EXPECT_EQ(histogram.percentile(0), nanoseconds(1));
  EXPECT_EQ(histogram.percentile(100), seconds(1000));
}

TEST(Histogram, without_values_has_none) {
  const Histogram histogram;
  EXPECT_EQ(histogram.percentile(50).count(), 0);
  EXPECT_EQ(histogram.mean().count(), 0);
}

Result bandwidth() {
  Result result;
  result.what = "bandwidth";
  result.operation = "write";
  result.link = "loop";
  result.size = 1'000'000;
  result.seconds = 2;
  result.operations = 1000;
  result.here = Side{.usage = {0.3, 0.2, std::nullopt}};
  return result;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Result, of_copies_has_no_operation_and_no_connections) {
  auto copies = bandwidth();
  copies.what = copies.operation = "memcpy";
  copies.size = 65'536;
  EXPECT_TRUE(text_of(copies).starts_with("memcpy, 64K bytes: 1000 in 2.00 s\n"))
      << text_of(copies);
}

TEST(Result, tells_bandwidth_as_what_was_moved_in_the_time) {
  EXPECT_TRUE(has(json_of(bandwidth()), R"("gbit_s":4.000,"per_second":500.000)"));
  EXPECT_TRUE(has(text_of(bandwidth()), "4.000 Gbit/s, 0.500 GB/s, 500 a second"));
}

TEST(Result, counts_both_ways_where_both_sides_send) {
  auto result = bandwidth();
  result.bidirectional = true;
  result.peer_operations = 1000;
  EXPECT_TRUE(has(json_of(result), R"("operations":2000,"gbit_s":8.000)"));
}

TEST(Result, says_null_where_the_machine_counts_no_instructions) {
  auto result = bandwidth();
  EXPECT_TRUE(has(json_of(result), R"("instructions_per_operation":null)"));
  EXPECT_TRUE(has(json_of(result), R"("peer":null)"));
  result.here->usage.instructions = 5'000;
  EXPECT_TRUE(has(json_of(result), R"("instructions_per_operation":5.000)"));
}

TEST(Result, tells_latency_by_percentiles) {
  Histogram latency;
  for (int i = 0; i < 10; ++i) latency.add(std::chrono::microseconds(4));
  auto result = bandwidth();
  result.latency = &latency;
  EXPECT_TRUE(has(json_of(result), R"("round_trip_us":{"min":4.000,"mean":4.000,"p50":4.000)"));
  EXPECT_FALSE(has(json_of(result), "gbit_s"));
}

TEST(Result, divides_cpu_time_into_that_of_the_program_and_of_the_kernel) {
  EXPECT_TRUE(has(json_of(bandwidth()), R"("cpu_s":0.500,"user_s":0.300,"system_s":0.200)"));
  EXPECT_TRUE(has(text_of(bandwidth()), "here: CPU 25 %, of it in the kernel 40 %"));
}

TEST(Turns, count_as_idle_if_they_take_as_long_as_without_work) {
  Turns turns;
  EXPECT_EQ(turns.times().working(), std::nullopt);
  turns.learn([] {
    const auto end = Clock::now() + microseconds(2);
    while (Clock::now() < end) {
    }
  });
  turns.add(microseconds(3));
  EXPECT_EQ(turns.times().working(), 0);
  turns.add(seconds(1));
  turns.add(seconds(1));
  EXPECT_NEAR(turns.times().working().value(), 1, 0.001);
}

// A stream of 1 GB in two seconds between two programs that poll, with a CPU each.
class StreamLimit : public ::testing::Test {
 protected:
  StreamLimit() {
    result = bandwidth();
    result.here = side(0.5);
    result.peer = side(0.5);
  }
  static Side side(double working) {
    const TurnTimes turns{seconds(1), seconds(1) - nanoseconds(std::llround(working * 1e9))};
    return {.usage = {1.9, 0.1, std::nullopt}, .turns = turns, .memcpy_rate = 10'000'000'000};
  }
  void in_kernel(Side& side, double share) {
    side.usage.system_seconds = result.seconds * share;
    side.usage.user_seconds = result.seconds * (1 - share);
  }
  [[nodiscard]] std::string limit() const { return limit_of(result).name; }

  Result result;
};

TEST_F(StreamLimit, is_the_side_that_always_works) {
  EXPECT_EQ(limit(), "neither side");
  result.here = side(0.95);
  EXPECT_EQ(limit(), "sender");
  result.peer = side(0.97);
  EXPECT_EQ(limit(), "both sides");
  result.here = side(0.5);
  EXPECT_EQ(limit(), "receiver");
  EXPECT_TRUE(has(text_of(result), "limit: receiver (it works 97 % of the time"));
  EXPECT_TRUE(
      has(json_of(result), R"("limit":"receiver","limit_reason":"it works 97 % of the time)"));
}

TEST_F(StreamLimit, is_the_kernel_where_most_of_that_time_is_spent_there) {
  result.here = side(0.95);
  in_kernel(*result.here, 0.6);
  EXPECT_EQ(limit(), "sender's system calls");
  result.operation = "get";
  EXPECT_EQ(limit(), "receiver's system calls");
  result.bidirectional = true;
  EXPECT_EQ(limit(), "this side's system calls");
}

TEST_F(StreamLimit, is_the_receivers_copy_where_memcpy_takes_most_of_the_time) {
  result.peer = side(0.95);
  result.peer->memcpy_rate = 800'000'000;  // 0.625 of the time for 500 MB a second
  EXPECT_EQ(limit(), "receiver's copy");
  EXPECT_TRUE(has(text_of(result), "one memcpy of the bytes takes 62 % of it"));
  EXPECT_TRUE(has(text_of(result), "memcpy of as many bytes: here 10.00 GB/s, peer 0.80 GB/s\n"));
  result.operation = "read";
  EXPECT_EQ(limit(), "sender") << "which reads its bytes, and need not copy them";
}

TEST_F(StreamLimit, is_a_cpu_that_a_polling_side_does_not_always_have) {
  result.here = side(0.95);
  in_kernel(*result.here, 0.1);
  result.here->usage.user_seconds = 1;
  EXPECT_EQ(limit(), "too few CPUs");
  result.sleeps = true;
  EXPECT_EQ(limit(), "receiver") << "who sleeps uses the CPU for work only";
}

TEST_F(StreamLimit, is_not_known_without_the_figures_of_both_sides) {
  result.here = side(0.95);
  result.peer->turns = {};
  EXPECT_EQ(limit(), "");
  EXPECT_TRUE(has(json_of(result), R"("limit":null,"limit_reason":null)"));
  result.peer.reset();
  EXPECT_EQ(limit(), "");
  EXPECT_FALSE(has(text_of(result), "limit"));
}

TEST_F(StreamLimit, is_the_slower_link_where_its_rate_is_used) {
  result.here->megabits = 10'000;
  result.peer->megabits = 4'200;
  EXPECT_EQ(limit(), "link");
  EXPECT_TRUE(has(json_of(result), R"("link_mbit_s":4200,"share_of_link":0.952)"));
  EXPECT_TRUE(has(text_of(result), "link: 4.2 Gbit/s, of which these bytes are 95.2 %\n"));
  result.peer->megabits = 10'000;
  EXPECT_EQ(limit(), "neither side");
  EXPECT_TRUE(has(text_of(result), "link: 10 Gbit/s, of which these bytes are 40.0 %\n"));
}

TEST_F(StreamLimit, says_nothing_of_a_link_without_a_rate_or_faster_than_it) {
  EXPECT_TRUE(has(json_of(result), R"("link_mbit_s":null,"share_of_link":null)"));
  EXPECT_FALSE(has(text_of(result), "link:"));
  result.here->megabits = 1'000;
  EXPECT_TRUE(has(json_of(result), R"("share_of_link":null)"));
  EXPECT_FALSE(has(text_of(result), "link:"));
}

TEST(Result, writes_sizes_as_people_do) {
  EXPECT_EQ(text_of_size(8), "8");
  EXPECT_EQ(text_of_size(8192), "8K");
  EXPECT_EQ(text_of_size(1'500), "1500");
  EXPECT_EQ(text_of_size(std::uint64_t{1} << 30), "1G");
}

}  // namespace
}  // namespace stp::perf
