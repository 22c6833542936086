// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <thread>

#include "tests/files/limited_descriptors.h"
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
        root, base_name(root), {},
        [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
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

TEST_F(TreeTest, a_directory_gets_another_name_where_one_is_given) {
  std::vector<std::string> found;
  walk_tree((directory_ / "tree/b").string(), "there/c", {},
            [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
            [&](const std::string& path, const std::string&) { FAIL() << path; });
  EXPECT_EQ(found, (std::vector<std::string>{"there/c/inner", "there/c/up", "there/c"}));
}

TEST_F(TreeTest, a_single_file_is_a_tree_of_one) {
  EXPECT_EQ(walk((directory_ / "tree/a").string()), std::vector<std::string>{"a"});
}

TEST_F(TreeTest, a_directory_that_becomes_a_link_meanwhile_is_not_followed) {
  std::filesystem::create_directory(directory_ / "outside");
  std::ofstream(directory_ / "outside/secret") << "secret";
  std::vector<std::string> found, failed;
  walk_tree((directory_ / "tree").string(), "tree", {},
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
  walk_tree((directory_ / "tree").string(), "tree", {},
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
  const auto tree = SourceDirectory::open(nullptr, (directory_ / "tree").string());
  for (int i = 0; i < 5'000; ++i) {
    try {
      TreeEntry entry{tree, "a", "a", "a", {}};
      ASSERT_EQ(::fstatat(tree->fd(), "a", &entry.status, AT_SYMLINK_NOFOLLOW), 0);
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

// Broad and deep ones. Each file that is found holds its directory until it is sent.
TEST_F(TreeTest, a_tree_of_any_shape_needs_only_a_few_descriptors) {
  constexpr int kMany = 400;
  std::string deep = "tree";
  for (int i = 0; i < kMany; ++i) {
    std::filesystem::create_directory(directory_ / ("tree/broad" + std::to_string(i)));
    std::ofstream(directory_ / ("tree/broad" + std::to_string(i) + "/file")) << "content";
    deep += "/d";
    std::filesystem::create_directory(directory_ / deep);
    std::ofstream(directory_ / (deep + "/file")) << "content";
  }
  const test::LimitedDescriptors limited(SourceDirectory::kMostOpen + 10);
  std::vector<FileReader> files;
  std::size_t directories = 0;
  walk_tree((directory_ / "tree").string(), "tree", {},
            [&](const TreeEntry& entry) {
              auto file = FileReader::in_tree(entry);
              if (file.metadata().kind == FileKind::kDirectory) ++directories;
              if (file.metadata().size == 7) files.push_back(std::move(file));
            },
            [&](const std::string& path, const std::string& why) { FAIL() << path << why; });
  EXPECT_EQ(directories, 2U * kMany + 3);
  ASSERT_EQ(files.size(), 2U * kMany);
  for (auto& file : files) {
    std::string content(7, ' ');
    file.open();
    file.read(std::as_writable_bytes(std::span(content)));
    EXPECT_EQ(content, "content") << file.path();
    file.close();
  }
}

TEST_F(TreeTest, a_directory_that_is_opened_again_is_the_same_or_an_error) {
  const auto root = SourceDirectory::open(nullptr, (directory_ / "tree").string());
  const auto b = SourceDirectory::open(root, "b");
  ASSERT_NE(b, nullptr);
  const auto push_out = [&] {
    std::vector<SourceDirectory::Pointer> others;
    for (std::size_t i = 0; i <= SourceDirectory::kMostOpen; ++i)
      others.push_back(SourceDirectory::open(root, "empty"));
  };
  push_out();
  EXPECT_GE(b->fd(), 0);
  push_out();
  std::filesystem::rename(directory_ / "tree/b", directory_ / "b");
  std::filesystem::create_directory(directory_ / "tree/b");
  EXPECT_EQ(b->fd(), -1);
  EXPECT_EQ(errno, ESTALE);
  std::filesystem::remove(directory_ / "tree/b");
  std::filesystem::create_directory_symlink("../b", directory_ / "tree/b");
  EXPECT_EQ(b->fd(), -1) << "a link is not followed, even to the same directory";
}

TEST_F(TreeTest, what_is_excluded_is_not_visited) {
  std::vector<std::string> found;
  walk_tree((directory_ / "tree").string(), "tree",
            Filter({{false, "b/inner"}, {false, "empty/"}, {false, "z"}}, "tree"),
            [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
            [&](const std::string& path, const std::string&) { FAIL() << path; });
  EXPECT_EQ(found, (std::vector<std::string>{"tree/a", "tree/b/up", "tree/b", "tree"}));
}

TEST_F(TreeTest, of_a_list_what_it_names_is_visited_with_the_ways_to_it) {
  std::vector<std::string> found, failed;
  const auto walk = [&](const std::vector<std::string>& paths, const std::string& name) {
    found.clear();
    failed.clear();
    walk_listed((directory_ / "tree").string(), name, paths, {},
                [&](const TreeEntry& entry) { found.push_back(entry.path_there); },
                [&](const std::string& path, const std::string&) { failed.push_back(path); });
  };
  std::filesystem::create_directories(directory_ / "tree/c/d");
  std::ofstream(directory_ / "tree/c/d/e") << 1;
  walk({"c/d/e", "./b//inner", "a"}, "tree");
  EXPECT_EQ(found, (std::vector<std::string>{"tree/a", "tree/b/inner", "tree/c/d/e", "tree/c/d",
                                             "tree/c", "tree/b", "tree"}));
  EXPECT_TRUE(failed.empty());
  walk({"b/inner", "b", "b"}, "");
  EXPECT_EQ(found, (std::vector<std::string>{"b/inner", "b/up", "b"})) << "nothing twice";
  walk({"../secret", "no/where", "b/up/tree/a", "a"}, "tree");
  EXPECT_EQ(found, (std::vector<std::string>{"tree/a", "tree/b", "tree"})) << "no link is followed";
  EXPECT_EQ(failed.size(), 3U);
  walk({"."}, "tree");
  EXPECT_EQ(found.size(), 10U);
}

TEST(ReadPaths, takes_lines_or_what_ends_with_zeros) {
  const auto paths = [](const std::string& text) {
    std::istringstream in(text);
    return read_paths(in);
  };
  EXPECT_EQ(paths("# c\n;c\na b\n\nc/d"), (std::vector<std::string>{"a b", "c/d"}));
  EXPECT_EQ(paths(std::string("a\nb\0#c\0", 7)), (std::vector<std::string>{"a\nb", "#c"}));
  EXPECT_TRUE(paths("").empty());
}

TEST_F(TreeTest, what_is_not_there_is_told) {
  const auto nowhere = (directory_ / "nowhere").string();
  EXPECT_EQ(walk(nowhere), std::vector<std::string>{"failed: " + nowhere});
}

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
