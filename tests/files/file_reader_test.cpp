// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/temporary_directory.h"
#include "tools/files/failure.h"

namespace stp::files {
namespace {

class FileReaderTest : public ::testing::Test {
 protected:
  FileReaderTest() { write("file", "old content"); }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  // Changes one byte, not the length.
  void change() { std::fstream(path_, std::ios::in | std::ios::out).put('O'); }
  static std::string read(FileReader& reader, std::size_t size) {
    std::string text(size, ' ');
    reader.read(std::as_writable_bytes(std::span(text)));
    return text;
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = (directory_ / "file").string();
};

TEST_F(FileReaderTest, a_file_that_stays_as_it_is_is_whole) {
  auto reader = FileReader::single(path_);
  EXPECT_TRUE(reader.open());
  EXPECT_EQ(read(reader, 11), "old content");
  EXPECT_NO_THROW(reader.check_whole());
}

TEST_F(FileReaderTest, a_file_that_was_replaced_before_its_turn_is_the_new_one) {
  auto reader = FileReader::single(path_);
  write("other", "a longer content");
  ::chmod((directory_ / "other").c_str(), 0600);
  std::filesystem::rename(directory_ / "other", path_);
  EXPECT_FALSE(reader.open()) << "the receiver has to know";
  EXPECT_EQ(reader.metadata().size, 16U);
  EXPECT_EQ(reader.metadata().mode, 0600U);
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(reader.metadata().modified.tv_nsec, found.st_mtim.tv_nsec);
  EXPECT_EQ(read(reader, 16), "a longer content");
  EXPECT_NO_THROW(reader.check_whole());
}

// Also at once after it was written: the clock of files moves in steps.
TEST_F(FileReaderTest, a_change_while_it_is_read_is_seen_however_small_and_early) {
  for (int i = 0; i < 20; ++i) {
    write("file", "old content");
    auto reader = FileReader::single(path_);
    reader.open();
    read(reader, 4);
    change();
    read(reader, 7);
    EXPECT_THROW(reader.check_whole(), FileChanged) << i;
    reader.open();
    EXPECT_EQ(read(reader, 11), "Old content");
    EXPECT_NO_THROW(reader.check_whole());
  }
}

TEST_F(FileReaderTest, a_change_that_hides_its_time_is_seen) {
  auto reader = FileReader::single(path_);
  reader.open();
  read(reader, 11);
  const auto time = std::filesystem::last_write_time(path_);
  change();
  std::filesystem::last_write_time(path_, time);
  EXPECT_THROW(reader.check_whole(), FileChanged);
}

TEST_F(FileReaderTest, another_name_or_mode_of_the_same_content_is_no_change) {
  auto reader = FileReader::single(path_);
  reader.open();
  read(reader, 11);
  std::filesystem::create_hard_link(path_, directory_ / "second");
  EXPECT_NO_THROW(reader.check_whole());
  reader.open();
  read(reader, 11);
  ::chmod(path_.c_str(), 0600);
  EXPECT_NO_THROW(reader.check_whole());
}

TEST_F(FileReaderTest, a_file_that_is_replaced_while_it_is_read_is_the_old_one) {
  auto reader = FileReader::single(path_);
  reader.open();
  write("other", "a longer content");
  std::filesystem::rename(directory_ / "other", path_);
  EXPECT_EQ(read(reader, 11), "old content");
  EXPECT_NO_THROW(reader.check_whole());
}

TEST_F(FileReaderTest, a_file_that_grows_or_shrinks_while_it_is_read_has_changed) {
  auto reader = FileReader::single(path_);
  reader.open();
  read(reader, 11);
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_THROW(reader.check_whole(), FileChanged);
  EXPECT_FALSE(reader.open());
  EXPECT_EQ(reader.metadata().size, 15U);
  std::filesystem::resize_file(path_, 3);
  EXPECT_THROW(read(reader, 15), FileChanged);
  EXPECT_FALSE(reader.open());
  EXPECT_FALSE(reader.metadata().stream);
  EXPECT_EQ(read(reader, 3), "old");
}

TEST_F(FileReaderTest, a_file_whose_size_is_not_that_of_its_content_is_a_stream) {
  auto reader = FileReader::single("/proc/sys/kernel/ostype");
  ASSERT_EQ(reader.metadata().size, 0U);
  reader.open();
  EXPECT_THROW(reader.check_whole(), FileChanged);
  EXPECT_FALSE(reader.open());
  EXPECT_TRUE(reader.metadata().stream);
  std::string text(100, ' ');
  EXPECT_EQ(reader.read_some(std::as_writable_bytes(std::span(text))), 6U);
  EXPECT_EQ(text.substr(0, 6), "Linux\n");
  EXPECT_NO_THROW(reader.check_whole());
}

TEST_F(FileReaderTest, holes_are_found_and_passed_over) {
  constexpr std::uint64_t kSize = 10 << 20, kData = 4 << 20;
  {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out << "begin";
    out.seekp(kData) << "middle";
  }
  std::filesystem::resize_file(path_, kSize);
  auto reader = FileReader::single(path_);
  reader.open();
  std::uint64_t at = 0, holes = 0;
  std::string data;
  while (at != kSize) {
    const auto next = reader.next_extent(at, kSize);
    ASSERT_GT(next.length, 0U);
    ASSERT_LE(next.length, kSize - at);
    if (next.is_hole)
      holes += next.length;
    else
      data += read(reader, next.length);
    at += next.length;
  }
  EXPECT_NO_THROW(reader.check_whole());
  EXPECT_EQ(data.substr(0, 5), "begin");
  EXPECT_NE(data.find("middle"), std::string::npos);
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  if (static_cast<std::uint64_t>(found.st_blocks) * 512 >= kSize) GTEST_SKIP() << "no holes here";
  EXPECT_GT(holes, kSize / 2);
}

TEST_F(FileReaderTest, a_short_hole_is_sent_as_zeros) {
  std::filesystem::resize_file(path_, 60'000);
  auto reader = FileReader::single(path_);
  reader.open();
  std::string all;
  while (all.size() != 60'000) {
    const auto next = reader.next_extent(all.size(), 60'000);
    ASSERT_FALSE(next.is_hole);
    all += read(reader, next.length);
  }
  EXPECT_EQ(all, "old content" + std::string(60'000 - 11, '\0'));
}

}  // namespace
}  // namespace stp::files
