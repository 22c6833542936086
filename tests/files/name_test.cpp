// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/name.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

using Path = std::vector<std::string>;

TEST(Name, a_path_below_the_directory_is_accepted) {
  EXPECT_EQ(accepted_path("file.iso"), Path{"file.iso"});
  EXPECT_EQ(accepted_path("a/b/c"), (Path{"a", "b", "c"}));
  EXPECT_EQ(accepted_path("a b\xc3\xa4"), Path{"a b\xc3\xa4"});
}

TEST(Name, no_path_leads_out_of_the_directory) {
  for (const auto* path :
       {"", "/", ".", "..", "/etc/passwd", "../up", "a/../../up", "a/./b", "a//b", "a/"})
    EXPECT_EQ(accepted_path(path), std::nullopt) << path;
}

TEST(Name, control_characters_are_refused) {
  EXPECT_EQ(accepted_path("a\nb"), std::nullopt);
  EXPECT_EQ(accepted_path("dir/a\x1b[2J"), std::nullopt);
  EXPECT_EQ(accepted_path("a\x7f/b"), std::nullopt);
  EXPECT_EQ(accepted_path(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(Name, the_longest_names_are_accepted_and_longer_ones_refused) {
  EXPECT_TRUE(accepted_path(std::string(255, 'x')).has_value());
  EXPECT_EQ(accepted_path(std::string(256, 'x')), std::nullopt);
  std::string path = "x";
  while (path.size() + 2 <= kMaxPathLength) path += "/x";
  EXPECT_TRUE(accepted_path(path).has_value());
  EXPECT_EQ(accepted_path(path + "/x"), std::nullopt);
}

TEST(Name, a_sender_cannot_name_a_temporary_file_of_the_receiver) {
  EXPECT_EQ(accepted_path(".stp-recv.123.0.part"), std::nullopt);
  EXPECT_EQ(accepted_path("dir/.stp-recv.123.0.part"), std::nullopt);
  EXPECT_TRUE(accepted_path(".bashrc").has_value());
}

TEST(Name, the_base_name_is_the_last_component) {
  EXPECT_EQ(base_name("/etc/passwd"), "passwd");
  EXPECT_EQ(base_name("dir/"), "dir");
  EXPECT_EQ(base_name("file"), "file");
  for (const auto* nameless : {"", "/", ".", "..", "a/.."}) EXPECT_EQ(base_name(nameless), "");
}

}  // namespace
}  // namespace stp::files
