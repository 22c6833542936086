// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/linked_list.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

namespace stp::test {
namespace {

struct One;
struct Two;
struct Member : ListHook<One>, ListHook<Two> {
  int number = 0;
};
using Ones = LinkedList<Member, One>;
using Twos = LinkedList<Member, Two>;

class Lists : public ::testing::Test {
 protected:
  std::array<Member, 4> members;
  Ones ones;
  Twos twos;

  Lists() {
    for (int i = 0; i < 4; ++i) members[static_cast<std::size_t>(i)].number = i;
  }
  template <typename List>
  static std::vector<int> numbers(const List& list) {
    std::vector<int> all;
    for (auto* each = list.first(); each != nullptr; each = list.after(*each))
      all.push_back(each->number);
    return all;
  }
};

TEST_F(Lists, a_member_leaves_one_list_and_stays_in_the_other) {
  for (auto& member : members) ones.push_back(member);
  twos.push_back(members[1]);
  static_cast<ListHook<One>&>(members[1]).unlink();
  static_cast<ListHook<One>&>(members[1]).unlink();
  EXPECT_EQ(numbers(ones), (std::vector{0, 2, 3}));
  EXPECT_EQ(numbers(twos), std::vector{1});
  EXPECT_FALSE(static_cast<ListHook<One>&>(members[1]).linked());
  EXPECT_TRUE(static_cast<ListHook<Two>&>(members[1]).linked());
  EXPECT_EQ(ones.pop_front().number, 0);
  ones.push_back(members[0]);
  EXPECT_EQ(numbers(ones), (std::vector{2, 3, 0}));
}

TEST_F(Lists, a_member_that_is_destroyed_has_left) {
  std::optional<Member> short_lived(std::in_place);
  ones.push_back(members[0]);
  ones.push_back(*short_lived);
  ones.push_back(members[1]);
  short_lived.reset();
  EXPECT_EQ(numbers(ones), (std::vector{0, 1}));
}

TEST_F(Lists, a_whole_list_is_appended_in_its_order) {
  Ones other;
  ones.push_back(members[0]);
  ones.append(other);
  EXPECT_EQ(numbers(ones), std::vector{0});
  other.push_back(members[1]);
  other.push_back(members[2]);
  ones.append(other);
  EXPECT_TRUE(other.empty());
  other.push_back(members[3]);
  EXPECT_EQ(numbers(ones), (std::vector{0, 1, 2}));
  Ones empty;
  empty.append(ones);
  EXPECT_EQ(numbers(empty), (std::vector{0, 1, 2}));
  EXPECT_EQ(ones.first(), nullptr);
}

TEST_F(Lists, a_list_is_disbanded_without_a_visit_to_its_members) {
  for (auto& member : members) ones.push_back(member);
  ones.disband();
  EXPECT_TRUE(ones.empty());
  EXPECT_TRUE(static_cast<ListHook<One>&>(members[0]).linked());
  for (auto& member : members) static_cast<ListHook<One>&>(member).unlink();
  ones.push_back(members[2]);
  EXPECT_EQ(numbers(ones), std::vector{2});
}

}  // namespace
}  // namespace stp::test
