// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/conflicts.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stp::files
