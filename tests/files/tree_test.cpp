// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/temporary_directory.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"

namespace stp::files {
namespace {

class TreeTest : public ::testing::Test {
 protected:
  TreeTest() {
    std::filesystem::create_directories(directory_ / "tree/b");
    std::filesystem::create_directories(directory_ / "tree/empty");
    for (const auto* name : {"tree/z", "tree/a", "tree/b/inner"})
      std::ofstream(directory_ / name) << name;
    std::filesystem::create_directory_symlink("..", directory_ / "tree/b/up");
  }
  static std::vector<std::string> walk(const std::string& root) {
    std::vector<std::string> found;
    walk_tree(
        root, {}, [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
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
  const auto found = walk((directory_ / "tree/.").string());
  EXPECT_EQ(found, (std::vector<std::string>{"a", "b/inner", "b/up", "b", "empty", "z"}));
}

TEST_F(TreeTest, a_single_file_is_a_tree_of_one) {
  EXPECT_EQ(walk((directory_ / "tree/a").string()), std::vector<std::string>{"a"});
}

TEST_F(TreeTest, a_directory_that_becomes_a_link_meanwhile_is_not_followed) {
  std::filesystem::create_directory(directory_ / "outside");
  std::ofstream(directory_ / "outside/secret") << "secret";
  std::vector<std::string> found, failed;
  walk_tree((directory_ / "tree").string(), {},
            [&](const TreeEntry& entry) {
              found.push_back(entry.path_there);
              if (entry.path_there != "tree/a") return;
              std::filesystem::rename(directory_ / "tree/b", directory_ / "b");
              std::filesystem::create_directory_symlink("../outside", directory_ / "tree/b");
              std::filesystem::rename(directory_ / "tree/empty", directory_ / "empty");
              std::filesystem::create_directory_symlink("../outside", directory_ / "tree/empty");
            },
            [&](const std::string& path, const std::string&) { failed.push_back(path); });
  EXPECT_EQ(found, (std::vector<std::string>{"tree/a", "tree/b", "tree/empty", "tree/z", "tree"}));
  EXPECT_TRUE(failed.empty());
}

// The link replaces a directory above the open one, which stays in use.
TEST_F(TreeTest, a_link_in_the_place_of_a_directory_above_leads_nowhere) {
  std::filesystem::create_directories(directory_ / "outside/b");
  std::ofstream(directory_ / "outside/b/up") << "secret";
  walk_tree((directory_ / "tree").string(), {},
            [&](const TreeEntry& entry) {
              if (entry.path_there == "tree/b/inner") {
                std::filesystem::rename(directory_ / "tree", directory_ / "moved");
                std::filesystem::create_directory_symlink("outside", directory_ / "tree");
              }
              if (entry.path_there != "tree/b/up") return;
              EXPECT_EQ(FileReader::in_tree(entry).metadata().kind, FileKind::kSymbolicLink);
            },
            [&](const std::string& path, const std::string&) { FAIL() << path; });
}

TEST_F(TreeTest, a_file_that_becomes_a_link_again_and_again_never_leads_to_another) {
  std::ofstream(directory_ / "secret") << "a secret that is long";
  const auto file = (directory_ / "tree/a").string(), link = (directory_ / "link").string();
  std::filesystem::create_symlink("../secret", link);
  std::atomic<bool> done{false};
  std::thread swapper([&] {
    while (!done) ::renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  const auto tree = std::make_shared<const service::UniqueFd>(
      ::open((directory_ / "tree").c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 5'000; ++i) {
    try {
      TreeEntry entry{tree, "a", "a", "a", {}};
      ASSERT_EQ(::fstatat(tree->get(), "a", &entry.status, AT_SYMLINK_NOFOLLOW), 0);
      auto reader = FileReader::in_tree(entry);
      if (reader.metadata().kind != FileKind::kRegular) continue;
      std::string content(reader.metadata().size, ' ');
      reader.open();
      reader.read(std::as_writable_bytes(std::span(content)));
      EXPECT_EQ(content, "tree/a") << "after " << i;
    } catch (const FileFailure&) {
      // The file was first a link, and then no link.
    }
  }
  done = true;
  swapper.join();
}

TEST_F(TreeTest, what_is_excluded_is_not_visited) {
  std::vector<std::string> found;
  walk_tree((directory_ / "tree").string(), Exclude({"b/inner", "empty/", "z"}, "tree"),
            [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
            [&](const std::string& path, const std::string&) { FAIL() << path; });
  EXPECT_EQ(found, (std::vector<std::string>{"tree/a", "tree/b/up", "tree/b", "tree"}));
}

TEST(Exclude, a_pattern_without_a_slash_is_that_of_a_name_at_any_depth) {
  const Exclude exclude({"*.o", "cache/", "/top", "a/*.c"}, "root");
  EXPECT_TRUE(exclude.matches("root/x.o", false));
  EXPECT_TRUE(exclude.matches("root/deep/down/x.o", false));
  EXPECT_FALSE(exclude.matches("root/x.o.txt", false));
  EXPECT_TRUE(exclude.matches("root/deep/cache", true));
  EXPECT_FALSE(exclude.matches("root/deep/cache", false));
  EXPECT_TRUE(exclude.matches("root/top", false));
  EXPECT_FALSE(exclude.matches("root/deep/top", false));
  EXPECT_TRUE(exclude.matches("root/a/x.c", false));
  EXPECT_FALSE(exclude.matches("root/a/b/x.c", false));
  EXPECT_FALSE(exclude.matches("root/b/a/x.c", false));
}

TEST(Exclude, the_root_is_never_excluded_and_may_have_no_name) {
  EXPECT_FALSE(Exclude({"*"}, "root").matches("root", true));
  EXPECT_TRUE(Exclude({"top"}, "").matches("top", false));
}

TEST_F(TreeTest, what_is_not_there_is_told) {
  const auto nowhere = (directory_ / "nowhere").string();
  EXPECT_EQ(walk(nowhere), std::vector<std::string>{"failed: " + nowhere});
}

}  // namespace
}  // namespace stp::files
