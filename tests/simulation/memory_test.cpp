// SPDX-License-Identifier: BSD-3-Clause
// The simulation's checks detect faults.
#include <gtest/gtest.h>

#include "tools/sim/memory.h"

namespace stp::sim {
namespace {

TEST(memory, pattern_tells_transfers_and_places_apart) {
  Memory memory(1 << 16);
  const auto all = memory.all();
  fill_pattern(all, 1);
  EXPECT_TRUE(has_pattern(all, 1));
  EXPECT_FALSE(has_pattern(all, 2));
  EXPECT_FALSE(has_pattern(all.subspan(256, 256), 1));
  EXPECT_TRUE(has_pattern(all.subspan(256, 256), 1, 256));
  all[4711] ^= std::byte{1};
  EXPECT_FALSE(has_pattern(all, 1));
}

TEST(memory, one_byte_breaks_a_canary) {
  Memory memory(1 << 12);
  fill_canary(memory.all());
  EXPECT_TRUE(has_canary(memory.all()));
  for (const std::size_t at : {0, 1, 2000, 4095}) {
    memory.all()[at] ^= std::byte{1};
    EXPECT_FALSE(has_canary(memory.all())) << at;
    memory.all()[at] ^= std::byte{1};
  }
}

FetchTruth fetch(std::size_t word, wire::Function function, std::uint64_t operand = 0,
                 std::uint64_t compare = 0) {
  return {word, function, operand, compare};
}

RegionTruth closed_with(RegionTruth truth, std::uint64_t sum, std::uint64_t swapped) {
  truth.close({sum, 0, swapped, 0});
  return truth;
}

TEST(region_truth, an_operation_done_twice_or_never_is_noticed) {
  RegionTruth truth;
  truth.fetched(fetch(0, wire::Function::kFetchIncrement), 0);
  truth.fetched(fetch(0, wire::Function::kFetchAdd, 10), 1);
  EXPECT_TRUE(closed_with(truth, 11, 0).totals_right());
  EXPECT_FALSE(closed_with(truth, 12, 0).totals_right());
  EXPECT_FALSE(closed_with(truth, 1, 0).totals_right());
  truth.fetched(fetch(0, wire::Function::kFetchClear), 11);
  EXPECT_TRUE(closed_with(truth, 0, 0).totals_right());
}

TEST(region_truth, an_operation_that_ended_in_an_error_was_done_once_or_never) {
  RegionTruth truth;
  truth.fetch_failed(fetch(0, wire::Function::kFetchAdd, 5));
  truth.fetch_failed(fetch(2, wire::Function::kCompareAndSwap, 77, 0));
  EXPECT_TRUE(closed_with(truth, 0, 0).totals_right());
  EXPECT_TRUE(closed_with(truth, 5, 77).totals_right());
  EXPECT_FALSE(closed_with(truth, 10, 0).totals_right());
  EXPECT_FALSE(closed_with(truth, 0, 78).totals_right());
}

TEST(region_truth, no_value_is_swapped_away_twice) {
  RegionTruth truth;
  EXPECT_TRUE(truth.fetched(fetch(2, wire::Function::kCompareAndSwap, 5, 0), 0));
  EXPECT_TRUE(truth.fetched(fetch(2, wire::Function::kCompareAndSwap, 6, 0), 5));  // came too late
  EXPECT_FALSE(truth.fetched(fetch(2, wire::Function::kCompareAndSwap, 7, 0), 0));
}

}  // namespace
}  // namespace stp::sim
