// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_all.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <stdexcept>

#include "tests/temporary_directory.h"
#include "tests/unprivileged.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"

namespace stp::files {
namespace {

class Conflicts : public ::testing::Test {
 protected:
  Conflicts() { sending_.paths = {"a/x"}; }
  [[nodiscard]] std::string found(const std::vector<std::string>& filters = {},
                                  bool quiet = false) const {
    return conflict_of(sending_, filters, quiet);
  }
  [[nodiscard]] bool tells(const std::string& part, const std::vector<std::string>& filters = {},
                           bool quiet = false) const {
    return found(filters, quiet).find(part) != std::string::npos;
  }
  Sending sending_;
};

TEST_F(Conflicts, a_name_is_for_one_argument_or_for_standard_input) {
  sending_.name = "y";
  EXPECT_EQ(found(), "");
  sending_.paths = {"a/x", "b/z"};
  EXPECT_TRUE(tells("--name is for one FILE"));
  sending_.paths = {"a/x", "-"};
  EXPECT_EQ(found(), "");
  sending_.name = "";
  EXPECT_TRUE(tells("--name is empty"));
  sending_.name = "d/y";
  EXPECT_EQ(found(), "");
  for (const auto* name : {"../y", "/y", "y/", "d//y", "."}) {
    sending_.name = name;
    EXPECT_TRUE(tells("--name " + std::string(name) + ": no receiver")) << name;
  }
}

TEST_F(Conflicts, a_directory_for_all_is_below_that_of_the_receiver) {
  sending_.into = "d/e";
  EXPECT_EQ(found(), "");
  for (const auto* into : {"/d", "d/", "../d", "d//e", "."}) {
    sending_.into = into;
    EXPECT_TRUE(tells("--into")) << into;
  }
}

TEST_F(Conflicts, deletion_is_for_trees_and_never_for_what_another_argument_sends) {
  sending_.remove = true;
  EXPECT_TRUE(tells("--delete is for directories: it needs -r"));
  sending_.trees = true;
  EXPECT_EQ(found(), "");
  sending_.listed = {"b"};
  EXPECT_TRUE(tells("--delete"));
  sending_.listed.reset();
  sending_.paths = {"a", "."};
  EXPECT_TRUE(tells("send it alone"));
  sending_.into = "d";
  EXPECT_TRUE(tells("send it alone"));
}

TEST_F(Conflicts, a_list_is_for_one_directory) {
  sending_.trees = true;
  sending_.listed = {"b"};
  EXPECT_EQ(found(), "");
  sending_.paths = {"a", "c"};
  EXPECT_TRUE(tells("--files-from"));
}

TEST_F(Conflicts, patterns_are_for_trees_and_what_keeps_comes_before_what_skips) {
  EXPECT_TRUE(tells("--include is for directories", {"--include", "--exclude"}));
  sending_.hard_links = true;
  EXPECT_TRUE(tells("--hard-links is for directories"));
  sending_.trees = true;
  EXPECT_EQ(found({"--exclude"}), "");
  EXPECT_EQ(found({"--include", "--exclude"}), "");
  EXPECT_EQ(found({"--include", "--exclude-from"}), "");
  EXPECT_TRUE(tells("without a later --exclude", {"--include"}));
  EXPECT_TRUE(tells("without a later --exclude", {"--exclude", "--include"}));
}

TEST_F(Conflicts, options_for_files_need_one) {
  sending_.checksum = true;
  EXPECT_EQ(found(), "");
  sending_.paths = {"a/x", "-"};
  EXPECT_EQ(found(), "");
  sending_.paths = {"-"};
  EXPECT_TRUE(tells("--checksum has no effect on standard input"));
  sending_.trees = true;
  EXPECT_TRUE(tells("--recursive is for directories"));
  sending_.trees = sending_.checksum = false;
  EXPECT_EQ(found(), "");
  sending_.dry = true;
  EXPECT_TRUE(tells("--dry-run says nothing of standard input"));
}

TEST_F(Conflicts, a_line_for_each_file_and_none_at_all_contradict_each_other) {
  sending_.verbose = true;
  EXPECT_EQ(found(), "");
  EXPECT_TRUE(tells("--verbose and --quiet", {}, true));
  sending_.verbose = false;
  EXPECT_EQ(found({}, true), "");
}

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

class FirstLook : public ::testing::Test {
 protected:
  FirstLook() {
    std::filesystem::create_directories(directory_ / "tree/sub");
    for (const auto* name : {"file", "tree/sub/a"}) std::ofstream(directory_ / name) << name;
    std::filesystem::create_symlink("nowhere", directory_ / "dangling");
    ::mkfifo((directory_ / "fifo").c_str(), 0600);
  }
  // The names that are left, then what has failed.
  std::string look(const std::vector<std::string>& names) {
    sending_.paths.clear();
    for (const auto& name : names)
      sending_.paths.push_back(name == "-" ? name : (directory_ / name).string());
    std::string failures;
    const auto left = first_look(sending_, [&](const std::string& path, const std::string& why) {
      failures += "; " + path.substr(directory_.path().size() + 1) + ": " + why;
    });
    std::string text;
    for (const auto& path : left)
      text += (text.empty() ? "" : " ") +
              (path == "-" ? path : path.substr(directory_.path().size() + 1));
    return text + failures;
  }

  test::TemporaryDirectory directory_;
  Sending sending_;
};

TEST_F(FirstLook, tells_of_what_is_missing_and_of_what_is_no_file) {
  EXPECT_EQ(look({"file", "-"}), "file -");
  EXPECT_EQ(
      look({"file", "gone", "tree", "fifo"}),
      "file; gone: cannot read it: No such file or directory"
      "; tree: is a directory; send it and all that it holds with -r"
      "; fifo: is no regular file; devices, sockets and FIFOs are not sent; what comes out of "
      "one is: stp-send - HOST:PORT <FILE");
}

TEST_F(FirstLook, with_trees_takes_directories_and_symbolic_links) {
  sending_.trees = true;
  EXPECT_EQ(look({"tree", "tree/.", "file", "dangling", "gone", "fifo"}),
            "tree tree/. file dangling; gone: cannot read it: No such file or directory"
            "; fifo: is no regular file; devices, sockets and FIFOs are not sent");
}

TEST_F(FirstLook, tells_of_names_that_no_receiver_accepts) {
  sending_.name = "a/../b";
  EXPECT_NE(look({"file"}).find(".. in its path"), std::string::npos);
  sending_.trees = true;
  EXPECT_NE(look({"tree"}).find(".. in its path"), std::string::npos);
}

TEST_F(FirstLook, tells_of_what_is_listed_and_not_there) {
  sending_.trees = true;
  sending_.listed = {"sub/a", "sub/b", "../file", "sub"};
  sending_.rules = {{false, "c"}};
  EXPECT_EQ(look({"tree"}), "tree; tree/../file: leads out of the directory; list paths below it");
  sending_.listed = {"sub/a", "sub/b", "no/b"};
  EXPECT_EQ(look({"tree"}),
            "tree; tree/no/b: cannot read it: No such file or directory"
            "; tree/sub/b: cannot read it: No such file or directory");
  EXPECT_EQ(look({"file"}), "; file: is no directory; --files-from lists what is below one");
}

TEST_F(FirstLook, tells_of_what_this_user_may_not_read) {
  for (const auto* name : {"file", "tree/sub/a", "tree/sub"})
    std::filesystem::permissions(directory_ / name, std::filesystem::perms::none);
  {
    const test::Unprivileged user(directory_.path());
    EXPECT_EQ(look({"file", "dangling"}),
              "; file: cannot read it: Permission denied"
              "; dangling: cannot read it: No such file or directory");
    sending_.trees = true;
    EXPECT_EQ(look({"tree/sub", "file"}),
              "; tree/sub: cannot read it: Permission denied"
              "; file: cannot read it: Permission denied");
    sending_.listed = {"sub"};
    EXPECT_EQ(look({"tree"}), "tree; tree/sub: cannot read it: Permission denied");
  }
  // So that it can be removed.
  std::filesystem::permissions(directory_ / "tree/sub", std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace stp::files
