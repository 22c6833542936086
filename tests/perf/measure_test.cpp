// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

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
  result.here = Usage{0.5, std::nullopt};
  return result;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
  result.here->instructions = 5'000;
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

TEST(Result, writes_sizes_as_people_do) {
  EXPECT_EQ(text_of_size(8), "8");
  EXPECT_EQ(text_of_size(8192), "8K");
  EXPECT_EQ(text_of_size(1'500), "1500");
  EXPECT_EQ(text_of_size(std::uint64_t{1} << 30), "1G");
}

}  // namespace
}  // namespace stp::perf
