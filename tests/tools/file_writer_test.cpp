// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/temporary_directory.h"

namespace stp::files {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class FileWriterTest : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  FileWriter writer_;
};

TEST_F(FileWriterTest, a_file_has_no_name_before_it_is_committed) {
  ASSERT_EQ(writer_.open(directory_.path(), "file", 5, 0640), 0);
  ASSERT_EQ(writer_.append(bytes("hello")), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  ASSERT_EQ(writer_.commit(), 0);
  EXPECT_EQ(directory_.content("file"), "hello");
  EXPECT_EQ(directory_.names().size(), 1U);
}

TEST_F(FileWriterTest, permissions_are_kept_whatever_the_umask_says) {
  auto const before = ::umask(077);
  ASSERT_EQ(writer_.open(directory_.path(), "file", 0, 0754), 0);
  ASSERT_EQ(writer_.commit(), 0);
  ::umask(before);
  auto const mode = std::filesystem::status(directory_ / "file").permissions();
  EXPECT_EQ(static_cast<unsigned>(mode), 0754U);
}

TEST_F(FileWriterTest, a_discarded_file_leaves_nothing) {
  ASSERT_EQ(writer_.open(directory_.path(), "file", 5, 0644), 0);
  ASSERT_EQ(writer_.append(bytes("hel")), 0);
  writer_.discard();
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(FileWriterTest, an_existing_file_is_replaced_only_by_a_complete_one) {
  ASSERT_EQ(writer_.open(directory_.path(), "file", 3, 0644), 0);
  ASSERT_EQ(writer_.append(bytes("old")), 0);
  ASSERT_EQ(writer_.commit(), 0);

  ASSERT_EQ(writer_.open(directory_.path(), "file", 3, 0644), 0);
  ASSERT_EQ(writer_.append(bytes("ne")), 0);
  writer_.discard();
  EXPECT_EQ(directory_.content("file"), "old");

  ASSERT_EQ(writer_.open(directory_.path(), "file", 3, 0644), 0);
  ASSERT_EQ(writer_.append(bytes("new")), 0);
  ASSERT_EQ(writer_.commit(), 0);
  EXPECT_EQ(directory_.content("file"), "new");
}

TEST_F(FileWriterTest, what_cannot_be_written_is_said_before_the_content_comes) {
  EXPECT_EQ(writer_.open(directory_.path() + "/nowhere", "file", 1, 0644), -ENOENT);
  EXPECT_EQ(writer_.open(directory_.path(), "file", std::uint64_t{1} << 62, 0644), -ENOSPC);
  std::filesystem::create_directory(directory_ / "taken");
  EXPECT_EQ(writer_.open(directory_.path(), "taken", 1, 0644), -EISDIR);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"taken"});
}

TEST_F(FileWriterTest, a_symbolic_link_is_replaced_and_not_followed) {
  std::filesystem::create_symlink(directory_ / "victim", directory_ / "file");
  ASSERT_EQ(writer_.open(directory_.path(), "file", 1, 0644), 0);
  ASSERT_EQ(writer_.append(bytes("x")), 0);
  ASSERT_EQ(writer_.commit(), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "victim"));
  EXPECT_TRUE(
      std::filesystem::is_regular_file(std::filesystem::symlink_status(directory_ / "file")));
}

}  // namespace
}  // namespace stp::files
