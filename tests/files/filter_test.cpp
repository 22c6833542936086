// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/filter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace stp::files {
namespace {

Filter without(const std::vector<std::string>& patterns, const std::string& root) {
  std::vector<FilterRule> rules;
  for (const auto& pattern : patterns) rules.push_back({false, pattern});
  return {rules, root};
}

TEST(Filter, a_pattern_without_a_slash_is_that_of_a_name_at_any_depth) {
  const auto filter = without({"*.o", "cache/", "/top", "a/*.c"}, "root");
  EXPECT_TRUE(filter.leaves_out("root/x.o", false));
  EXPECT_TRUE(filter.leaves_out("root/deep/down/x.o", false));
  EXPECT_FALSE(filter.leaves_out("root/x.o.txt", false));
  EXPECT_TRUE(filter.leaves_out("root/deep/cache", true));
  EXPECT_FALSE(filter.leaves_out("root/deep/cache", false));
  EXPECT_TRUE(filter.leaves_out("root/top", false));
  EXPECT_FALSE(filter.leaves_out("root/deep/top", false));
  EXPECT_TRUE(filter.leaves_out("root/a/x.c", false));
  EXPECT_FALSE(filter.leaves_out("root/a/b/x.c", false));
  EXPECT_FALSE(filter.leaves_out("root/b/a/x.c", false));
}

TEST(Filter, never_leaves_out_the_root_which_may_have_no_name) {
  EXPECT_FALSE(without({"*"}, "root").leaves_out("root", true));
  EXPECT_TRUE(without({"top"}, "").leaves_out("top", false));
  EXPECT_FALSE(without({"*"}, "deep/root").leaves_out("deep/root", true));
  EXPECT_TRUE(without({"/x"}, "deep/root").leaves_out("deep/root/x", true));
}

TEST(Filter, the_first_rule_that_matches_decides) {
  const Filter filter({{true, "*/"}, {true, "*.c"}, {false, "*"}}, "root");
  EXPECT_FALSE(filter.leaves_out("root/a", true));
  EXPECT_FALSE(filter.leaves_out("root/a/x.c", false));
  EXPECT_TRUE(filter.leaves_out("root/a/x.h", false));
  const Filter other({{false, "*"}, {true, "*.c"}}, "root");
  EXPECT_TRUE(other.leaves_out("root/x.c", false));
}

TEST(Filter, reads_rules_from_lines) {
  std::istringstream in("# comment\n; comment\n\n*.o\r\n+ keep.o\n- other\n+plus\nlast");
  const auto rules = read_rules(in, false);
  ASSERT_EQ(rules.size(), 5U);
  const std::vector<FilterRule> wanted{
      {false, "*.o"}, {true, "keep.o"}, {false, "other"}, {false, "+plus"}, {false, "last"}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(rules[i].include, wanted[i].include) << i;
    EXPECT_EQ(rules[i].pattern, wanted[i].pattern);
  }
  std::istringstream again("x");
  EXPECT_TRUE(read_rules(again, true).at(0).include);
}

}  // namespace
}  // namespace stp::files
