// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/tree.h"

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"
#include "tools/files/failure.h"

namespace stp::files {
namespace {

class TreeTest : public ::testing::Test {
 protected:
  TreeTest() {
    std::filesystem::create_directories(directory_ / "tree/b");
    std::filesystem::create_directories(directory_ / "tree/empty");
    for (auto const* name : {"tree/z", "tree/a", "tree/b/inner"})
      std::ofstream(directory_ / name) << name;
    std::filesystem::create_directory_symlink("..", directory_ / "tree/b/up");
  }
  static std::vector<std::string> walk(const std::string& root) {
    std::vector<std::string> found;
    walk_tree(
        root, [&](const std::string&, const std::string& there) { found.push_back(there); },
        [&](const std::string& path, const std::string&) { found.push_back("failed: " + path); });
    return found;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(TreeTest, what_is_in_a_directory_comes_before_it_and_links_are_not_followed) {
  EXPECT_EQ(walk((directory_ / "tree").string()),
            (std::vector<std::string>{"tree/a", "tree/b/inner", "tree/b/up", "tree/b", "tree/empty",
                                      "tree/z", "tree"}));
}

TEST_F(TreeTest, a_slash_at_the_end_changes_nothing) {
  EXPECT_EQ(walk((directory_ / "tree/").string()), walk((directory_ / "tree").string()));
}

TEST_F(TreeTest, a_directory_without_a_name_gives_its_contents_alone) {
  auto const found = walk((directory_ / "tree/.").string());
  EXPECT_EQ(found, (std::vector<std::string>{"a", "b/inner", "b/up", "b", "empty", "z"}));
}

TEST_F(TreeTest, a_single_file_is_a_tree_of_one) {
  EXPECT_EQ(walk((directory_ / "tree/a").string()), std::vector<std::string>{"a"});
}

TEST_F(TreeTest, what_is_not_there_is_told) {
  auto const nowhere = (directory_ / "nowhere").string();
  EXPECT_EQ(walk(nowhere), std::vector<std::string>{"failed: " + nowhere});
}

}  // namespace
}  // namespace stp::files
