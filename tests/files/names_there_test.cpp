// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/names_there.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/temporary_directory.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"

namespace stp::files {
namespace {

Sending sending_of(const std::vector<std::string>& paths, bool trees = false) {
  Sending sending;
  sending.paths = paths;
  sending.trees = trees;
  return sending;
}

std::string complaint(const Sending& sending) {
  try {
    check_names(sending);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(NamesThere, of_two_arguments_are_never_the_same) {
  EXPECT_EQ(complaint(sending_of({"a/x", "a/y", "-"})), "");
  EXPECT_TRUE(
      contains(complaint(sending_of({"a/x", "b", "c/x"})), "a/x and c/x would both arrive as x"));
  EXPECT_TRUE(contains(complaint(sending_of({"a/x", "b/x/"}, true)), "both arrive as x"));
  EXPECT_TRUE(contains(complaint(sending_of({"stdin", "-"})), "standard input would"));
  EXPECT_TRUE(contains(complaint(sending_of({"-", "-"})), "standard input"));
}

TEST(NamesThere, of_trees_without_a_name_are_those_of_what_they_hold) {
  const test::TemporaryDirectory directory;
  for (const auto* name : {"one", "two"}) std::filesystem::create_directory(directory / name);
  std::ofstream(directory / "one/x") << 1;
  std::ofstream(directory / "two/y") << 1;
  const auto one = (directory / "one/.").string(), two = (directory / "two/.").string();
  EXPECT_EQ(complaint(sending_of({one, two, "a/z"}, true)), "");
  EXPECT_TRUE(contains(complaint(sending_of({one, two, "a/x"}, true)), "arrive as x"));
  std::ofstream(directory / "two/x") << 1;
  EXPECT_TRUE(contains(complaint(sending_of({one, two}, true)), "arrive as x"));
  auto excluded = sending_of({one, two}, true);
  excluded.rules = {{false, "x"}};
  EXPECT_EQ(complaint(excluded), "");
}

TEST(NamesThere, may_be_given_for_one_argument_or_for_standard_input) {
  auto sending = sending_of({"a/x"});
  sending.name = "y";
  EXPECT_EQ(name_there(sending, "a/x"), "y");
  sending.paths = {"a/x", "-"};
  EXPECT_EQ(complaint(sending), "");
  EXPECT_EQ(name_there(sending, "a/x"), "x");
  EXPECT_EQ(name_there(sending, "-"), "y");
}

TEST(NamesThere, are_in_a_directory_where_one_is_given) {
  auto sending = sending_of({"a/x"});
  sending.into = "d/e";
  EXPECT_EQ(complaint(sending), "");
  EXPECT_EQ(name_there(sending, "a/x"), "d/e/x");
  EXPECT_EQ(name_there(sending, "."), "d/e");
}

TEST(NamesThere, arguments_overlap_where_one_lies_in_another) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "tree/sub");
  std::filesystem::create_directories(directory / "tree-2");
  std::filesystem::create_directory_symlink("tree/sub", directory / "link");
  const auto in = [&](const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const auto& name : names) paths.push_back((directory / name).string());
    return overlap(paths);
  };
  EXPECT_TRUE(in({"tree/sub", "tree-2", "tree"}));
  EXPECT_TRUE(in({"link", "tree/./"}));
  EXPECT_TRUE(in({"tree", "tree/."}));
  EXPECT_FALSE(in({"tree", "tree-2", "missing"}));
  EXPECT_FALSE(in({"tree"}));
}

TEST(NamesThere, that_no_receiver_accepts_are_refused_with_the_true_reason) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory / "file") << 1;
  const auto reason = [&](const std::string& name) -> std::string {
    try {
      FileReader::single((directory / "file").string(), name);
    } catch (const FileFailure& failure) {
      return failure.what();
    }
    return {};
  };
  EXPECT_EQ(reason("a/b"), "");
  EXPECT_TRUE(contains(reason(".stp-recv.x"), "unfinished files"));
  EXPECT_TRUE(contains(reason("a/.stp-recv.x/b"), "unfinished files"));
  EXPECT_TRUE(contains(reason(std::string(300, 'x')), "more than 255 bytes"));
  EXPECT_TRUE(contains(reason("a\tb"), "control characters"));
  EXPECT_TRUE(contains(reason("a/../b"), ".. in its path"));
}

}  // namespace
}  // namespace stp::files
