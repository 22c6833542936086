// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/operation_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace stp::test {
namespace {

using managed::Operation;
using managed::OperationList;

class Operations : public ::testing::Test {
 protected:
  OperationList list;

  Operation& add(std::uint64_t context) {
    Operation operation;
    operation.context = context;
    return list.add(operation);
  }
  std::vector<std::uint64_t> contexts() const {
    std::vector<std::uint64_t> all;
    for (const auto* each = list.oldest(); each != nullptr; each = OperationList::next(*each))
      all.push_back(each->context);
    return all;
  }
};

TEST_F(Operations, stand_in_the_order_of_posting_whichever_completes_first) {
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.oldest(), nullptr);
  std::vector<Operation*> operations;
  for (std::uint64_t i = 0; i < 5; ++i) operations.push_back(&add(i));
  EXPECT_EQ(contexts(), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  list.remove(*operations[2]);
  list.remove(*operations[0]);
  list.remove(*operations[4]);
  EXPECT_EQ(contexts(), (std::vector<std::uint64_t>{1, 3}));
  add(5);
  EXPECT_EQ(contexts(), (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_EQ(list.size(), 3U);
}

TEST_F(Operations, the_next_to_begin_is_the_oldest_that_has_not) {
  auto& first = add(0);
  auto& second = add(1);
  auto& third = add(2);
  EXPECT_EQ(list.waiting(), &first);
  list.begun();
  EXPECT_EQ(list.waiting(), &second);
  list.remove(second);  // cancelled before it began
  EXPECT_EQ(list.waiting(), &third);
  list.begun();
  EXPECT_EQ(list.waiting(), nullptr);
  EXPECT_EQ(list.waiting(), nullptr);
  auto& fourth = add(3);
  EXPECT_EQ(list.waiting(), &fourth);
}

TEST_F(Operations, a_number_is_of_one_operation_only) {
  auto& first = add(0);
  const auto id = first.id;
  EXPECT_NE(id & OperationList::kMark, 0U);
  EXPECT_LT(id, 2 * OperationList::kMark);
  EXPECT_EQ(list.find(id), &first);
  EXPECT_EQ(list.find(~std::uint64_t{0}), nullptr);
  list.remove(first);
  EXPECT_EQ(list.find(id), nullptr);
  for (int i = 0; i < 100; ++i) {
    auto& again = add(1);
    ASSERT_NE(again.id, id) << "the place is used again, the number is not";
    ASSERT_EQ(list.find(id), nullptr);
    list.remove(again);
  }
}

TEST_F(Operations, no_operation_has_number_0) {
  EXPECT_EQ(list.find(0), nullptr);
  auto& first = add(0);
  EXPECT_EQ(list.find(0), nullptr);
  list.remove(first);
  EXPECT_EQ(list.find(0), nullptr) << "the place is free";
}

TEST_F(Operations, none_moves_while_others_come) {
  auto& first = add(42);
  const auto id = first.id;
  for (std::size_t i = 1; i < OperationList::kMost; ++i) add(i);
  EXPECT_EQ(list.size(), OperationList::kMost);
  EXPECT_EQ(list.find(id), &first);
  EXPECT_EQ(first.context, 42U);
  list.forget();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.waiting(), nullptr);
  EXPECT_EQ(list.find(id), nullptr);
}

}  // namespace
}  // namespace stp::test
