// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/name.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

TEST(Name, only_the_base_name_of_a_path_is_used) {
  EXPECT_EQ(accepted_name("file.iso"), "file.iso");
  EXPECT_EQ(accepted_name("/etc/passwd"), "passwd");
  EXPECT_EQ(accepted_name("../../up"), "up");
  EXPECT_EQ(accepted_name("a b\xc3\xa4"), "a b\xc3\xa4");
}

TEST(Name, what_names_no_file_is_refused) {
  for (auto const* name : {"", "/", ".", "..", "../..", "dir/", "dir/."})
    EXPECT_EQ(accepted_name(name), std::nullopt) << name;
}

TEST(Name, control_characters_are_refused) {
  EXPECT_EQ(accepted_name("a\nb"), std::nullopt);
  EXPECT_EQ(accepted_name("a\x1b[2J"), std::nullopt);
  EXPECT_EQ(accepted_name("a\x7f"), std::nullopt);
  EXPECT_EQ(accepted_name(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(Name, the_longest_name_is_accepted_and_a_longer_one_refused) {
  EXPECT_TRUE(accepted_name(std::string(255, 'x')).has_value());
  EXPECT_EQ(accepted_name(std::string(256, 'x')), std::nullopt);
}

TEST(Name, a_sender_cannot_name_a_temporary_file_of_the_receiver) {
  EXPECT_EQ(accepted_name(".stp-recv.123.0.part"), std::nullopt);
  EXPECT_TRUE(accepted_name(".bashrc").has_value());
}

TEST(Name, nothing_printed_moves_the_cursor) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f"), "a?[2Jb?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "??2J");
  EXPECT_EQ(printable("\xc3\xa4\xc2"), "\xc3\xa4\xc2");
}

}  // namespace
}  // namespace stp::files
