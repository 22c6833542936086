// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/result.h"

#include <gtest/gtest.h>

namespace stp::perf {
namespace {

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
