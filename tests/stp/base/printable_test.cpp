// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/printable.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stp::test {
namespace {

TEST(Printable, text_of_every_language_stays) {
  for (const auto* text : {"", "a b", "\xc3\xa4", "\xd7\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(printable(text, true), text);
}

TEST(Printable, no_control_character_passes) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f", true), "a?[2Jb?");
  EXPECT_EQ(printable(std::string_view("a\0b", 3), true), "a?b");
  EXPECT_EQ(printable("\xc2\x9b", true), "??") << "CSI in UTF-8";
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0", true), "????\xc2\xa0");
}

// A terminal of 8 bits takes the bytes 0x80 to 0x9f for control characters.
TEST(Printable, bytes_that_are_no_utf8_do_not_pass) {
  for (int byte = 0x80; byte <= 0xff; ++byte)
    EXPECT_EQ(printable(std::string(1, static_cast<char>(byte)), true), "?") << byte;
  EXPECT_EQ(printable("\xe4\xb8", true), "??") << "cut off";
  EXPECT_EQ(printable("\xc0\x9b\xe0\x82\x9b", true), "?????") << "longer than need be";
  EXPECT_EQ(printable("\xed\xa0\x80\xf4\x90\x80\x80", true), "???????") << "no characters";
}

TEST(Printable, nothing_changes_the_direction_of_the_text_or_begins_a_line) {
  for (const auto* text : {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
                           "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"})
    EXPECT_EQ(printable(text, true), std::string(std::string_view(text).size(), '?'));
  EXPECT_EQ(printable("\xe2\x80\x90", true), "\xe2\x80\x90") << "a hyphen";
}

TEST(Printable, only_ascii_passes_to_a_terminal_that_does_not_read_utf8) {
  EXPECT_EQ(printable("\xc3\x9b"
                      "2J",
                      false),
            "??2J");
}

class Locale : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
      if (const auto* const value = std::getenv(name)) usual_.emplace_back(name, value);
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) ::unsetenv(name);
    for (const auto& [name, value] : usual_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::pair<std::string, std::string>> usual_;
};

TEST_F(Locale, tells_whether_the_terminal_reads_utf8) {
  EXPECT_FALSE(terminal_reads_utf8());
  ::setenv("LANG", "de_DE.UTF-8", 1);
  EXPECT_TRUE(terminal_reads_utf8());
  ::setenv("LC_CTYPE", "C.utf8", 1);
  EXPECT_TRUE(terminal_reads_utf8());
  ::setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(terminal_reads_utf8()) << "it comes first";
}

}  // namespace
}  // namespace stp::test
