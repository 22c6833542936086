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
    for (auto const* name : {"tree/z", "tree/a", "tree/b/inner"})
      std::ofstream(directory_ / name) << name;
    std::filesystem::create_directory_symlink("..", directory_ / "tree/b/up");
  }
  static std::vector<std::string> walk(const std::string& root) {
    std::vector<std::string> found;
    walk_tree(
        root, [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
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

TEST_F(TreeTest, a_directory_that_becomes_a_link_meanwhile_is_not_followed) {
  std::filesystem::create_directory(directory_ / "outside");
  std::ofstream(directory_ / "outside/secret") << "secret";
  std::vector<std::string> found, failed;
  walk_tree((directory_ / "tree").string(),
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

// Above the directory at hand: what was opened is gone on with.
TEST_F(TreeTest, a_link_in_the_place_of_a_directory_above_leads_nowhere) {
  std::filesystem::create_directories(directory_ / "outside/b");
  std::ofstream(directory_ / "outside/b/up") << "secret";
  walk_tree((directory_ / "tree").string(),
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
  auto const file = (directory_ / "tree/a").string(), link = (directory_ / "link").string();
  std::filesystem::create_symlink("../secret", link);
  std::atomic<bool> done{false};
  std::thread swapper([&] {
    while (!done) ::renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  service::UniqueFd const tree(::open((directory_ / "tree").c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 5'000; ++i) {
    try {
      auto const reader = FileReader::in_tree({tree.get(), "a", "a", "a"});
      if (reader.metadata().kind != FileKind::kRegular) continue;
      EXPECT_EQ(reader.metadata().size, std::string("tree/a").size()) << "after " << i;
    } catch (const FileFailure&) {
      // It was told that it is a link, and then that it is none.
    }
  }
  done = true;
  swapper.join();
}

TEST_F(TreeTest, what_is_not_there_is_told) {
  auto const nowhere = (directory_ / "nowhere").string();
  EXPECT_EQ(walk(nowhere), std::vector<std::string>{"failed: " + nowhere});
}

}  // namespace
}  // namespace stp::files
