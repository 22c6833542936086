// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/mode_changes.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

unsigned changed(const char* text, std::uint16_t mode, bool is_directory = false) {
  const auto changes = ModeChanges::parse(text);
  return changes ? changes->apply(mode, is_directory) : 07777U;
}

TEST(ModeChanges, are_octal_or_symbolic) {
  EXPECT_EQ(changed("640", 0777), 0640U);
  EXPECT_EQ(changed("u=rwx,go=rx", 0), 0755U);
  EXPECT_EQ(changed("a+r", 0200), 0644U);
  EXPECT_EQ(changed("+r", 0200), 0644U);
  EXPECT_EQ(changed("go-w", 0666), 0644U);
  EXPECT_EQ(changed("g=", 0777), 0707U);
  EXPECT_EQ(changed("o=r,g=w", 0777), 0724U);
}

TEST(ModeChanges, may_be_for_directories_or_files_alone) {
  EXPECT_EQ(changed("D755,F644", 0, true), 0755U);
  EXPECT_EQ(changed("D755,F644", 0, false), 0644U);
  EXPECT_EQ(changed("Dg+w", 0755, false), 0755U);
}

TEST(ModeChanges, of_x_for_directories_and_programs_only) {
  EXPECT_EQ(changed("a=rX", 0600, true), 0555U);
  EXPECT_EQ(changed("a+rX", 0600, false), 0644U);
  EXPECT_EQ(changed("a+rX", 0700, false), 0755U);
  EXPECT_EQ(changed("a-X", 0711, false), 0600U);
}

TEST(ModeChanges, that_are_none_are_refused) {
  for (const auto* text : {"", "D", "888", "7777", "u", "u+q", "z+r", "644,", ",644", "64x", "+s"})
    EXPECT_FALSE(ModeChanges::parse(text)) << text;
}

}  // namespace
}  // namespace stp::files
