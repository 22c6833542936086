// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/plan.h"

#include <gtest/gtest.h>

#include <array>

namespace stp::perf {
namespace {

Plan stream(Operation operation) {
  Plan plan;
  plan.test = perf::Test::kStream;
  plan.operation = operation;
  return plan;
}

TEST(Plan, reaches_the_server_as_it_is) {
  auto plan = stream(Operation::kRead);
  plan.bidirectional = plan.sleeps = true;
  plan.size = kLargest;
  plan.window = 4000;
  plan.connections = 120;
  std::array<unsigned char, kPlanSize> bytes{};
  encode(plan, bytes);
  const auto read = decode_plan(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->operation, Operation::kRead);
  EXPECT_EQ(read->test, perf::Test::kStream);
  EXPECT_TRUE(read->bidirectional);
  EXPECT_TRUE(read->sleeps);
  EXPECT_EQ(read->size, plan.size);
  EXPECT_EQ(read->window, plan.window);
  EXPECT_EQ(read->connections, plan.connections);
}

TEST(Plan, of_another_version_or_beyond_the_limits_is_none) {
  std::array<unsigned char, kPlanSize> bytes{};
  encode(stream(Operation::kPut), bytes);
  auto other = bytes;
  other[0] = 99;
  EXPECT_FALSE(decode_plan(other));
  other = bytes;
  other[2] = 6;  // no such operation
  EXPECT_FALSE(decode_plan(other));
  auto large = stream(Operation::kPut);
  large.size = kLargest + 1;
  encode(large, bytes);
  EXPECT_FALSE(decode_plan(bytes));
}

TEST(Plan, that_cannot_be_run_is_complained_about) {
  Plan plan;
  EXPECT_EQ(complaint(plan), "");
  plan.size = 7;
  EXPECT_NE(complaint(plan), "") << "no place for a sequence number";
  plan.size = 8;
  plan.sleeps = true;
  EXPECT_NE(complaint(plan), "") << "nobody is told of a put";
  plan.operation = Operation::kWrite;
  EXPECT_EQ(complaint(plan), "");
  auto level0 = stream(Operation::kLevel0);
  level0.window = kMostLevel0Blocks;
  EXPECT_EQ(complaint(level0), "");
  ++level0.window;
  EXPECT_NE(complaint(level0), "") << "more Blocks than a region has at a time";
  auto sleepers = stream(Operation::kLevel0);
  sleepers.sleeps = true;
  EXPECT_EQ(complaint(sleepers), "");
  sleepers.connections = 2;
  EXPECT_NE(complaint(sleepers), "") << "one sleeps on one connection";
  auto many = stream(Operation::kPut);
  many.connections = 10'000;
  many.window = 64;
  EXPECT_EQ(complaint(many), "");
  many.window = 256;
  EXPECT_NE(complaint(many), "") << "no queue takes all their events";
  auto windowless = stream(Operation::kPut);
  windowless.window = 0;
  EXPECT_NE(complaint(windowless), "");
}

TEST(Plan, knows_its_operations_by_name) {
  for (const auto* const name : {"put", "get", "write", "read", "fetch", "level0"})
    EXPECT_STREQ(name_of(operation_named(name).value()), name);
  EXPECT_FALSE(operation_named("send"));
}

}  // namespace
}  // namespace stp::perf
