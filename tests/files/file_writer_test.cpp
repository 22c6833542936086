// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <latch>
#include <thread>

#include "tests/temporary_directory.h"
#include "tests/unprivileged.h"
#include "tools/files/directory.h"
#include "tools/files/receiver.h"

namespace stp::files {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Metadata file_of(std::uint64_t size, std::uint16_t mode = 0644) {
  Metadata metadata;
  metadata.size = size;
  metadata.mode = mode;
  return metadata;
}

Metadata resumed(std::uint64_t size) {
  auto metadata = file_of(size);
  metadata.resume = metadata.keep_times = true;
  metadata.modified = {1'600'000'000, 5};
  return metadata;
}

class FileWriterTest : public ::testing::Test {
 protected:
  int open(const std::string& name, const Metadata& metadata) {
    return open(writer_, name, metadata);
  }
  int open(FileWriter& writer, const std::string& name, const Metadata& metadata) {
    const auto root = directory_.path();
    Directory directory;
    EXPECT_EQ(DirectoriesBelow(root).open({}, directory), 0);
    return writer.open(std::move(directory), name, metadata);
  }
  void write(const std::string& name, const std::string& text, const Metadata& metadata) {
    ASSERT_EQ(open(name, metadata), 0);
    ASSERT_EQ(writer_.go_on_from(0), 0);
    ASSERT_EQ(writer_.append(bytes(text)), 0);
    ASSERT_EQ(commit(), 0);
  }
  int commit() {
    WholeFile file;
    if (const auto error = writer_.finish(file); error != 0) return error;
    Batch batch;
    batch.add(1, std::move(file));
    int result = -1;
    batch.settle();
    batch.report([&](std::uint32_t, int error) { result = error; });
    return result;
  }
  Digest digest_of_what_is_there() {
    ContentDigest digest;
    EXPECT_EQ(writer_.read_back(digest, whom_), 0);
    return digest.value();
  }
  static Digest digest_of(const std::string& text) {
    ContentDigest digest;
    digest.add(bytes(text));
    return digest.value();
  }
  struct stat status(const std::string& name) {
    struct stat found {};
    EXPECT_EQ(::stat((directory_ / name).c_str(), &found), 0);
    return found;
  }

  test::TemporaryDirectory directory_;
  bool stop_ = false;
  Turns turns_;
  const WorkFor whom_{turns_, "", [this] { return !stop_; }};
  FileWriter writer_;
};

TEST_F(FileWriterTest, a_file_has_no_name_before_it_is_committed) {
  ASSERT_EQ(open("file", file_of(5)), 0);
  ASSERT_EQ(writer_.append(bytes("hello")), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  ASSERT_EQ(commit(), 0);
  EXPECT_EQ(directory_.content("file"), "hello");
  EXPECT_EQ(directory_.names().size(), 1U);
}

// Uses the umask that this process had at its start.
TEST_F(FileWriterTest, the_umask_takes_permissions_away) {
  const auto mask = permitted(0777) ^ 0777U;
  write("file", "", file_of(0, 0777));
  EXPECT_EQ(status("file").st_mode & 07777U, 0777U & ~mask);
  const auto now = ::umask(0777);
  EXPECT_EQ(now, mask);
  EXPECT_EQ(permitted(0777), 0777U & ~mask);
  ::umask(now);
}

TEST_F(FileWriterTest, a_partial_file_that_somebody_else_has_put_there_is_left_alone) {
  std::string part;
  ASSERT_EQ(open("file", resumed(5)), 0);
  part = directory_.names().front();
  writer_.discard();
  ASSERT_TRUE(directory_.names().empty());
  // A FIFO would block. A second name of another file would change that file.
  ASSERT_EQ(::mkfifo((directory_ / part).c_str(), 0600), 0);
  EXPECT_EQ(open("file", resumed(5)), -EEXIST);
  std::filesystem::remove(directory_ / part);
  std::ofstream(directory_ / "precious") << "precious";
  std::filesystem::create_hard_link(directory_ / "precious", directory_ / part);
  EXPECT_EQ(open("file", resumed(5)), -EEXIST);
  EXPECT_EQ(directory_.content("precious"), "precious");
  EXPECT_EQ(directory_.names().size(), 2U);
}

TEST_F(FileWriterTest, a_partial_file_of_another_user_is_left_alone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(open("file", resumed(5)), 0);
  const auto part = directory_.names().front();
  writer_.discard();
  std::ofstream(directory_ / part) << "x";
  ASSERT_EQ(::chown((directory_ / part).c_str(), 65'530, 65'530), 0);
  EXPECT_EQ(open("file", resumed(5)), -EEXIST);
}

TEST_F(FileWriterTest, reading_back_ends_when_nobody_needs_it_any_more) {
  write("file", "hello", resumed(5));
  ASSERT_EQ(open("file", resumed(5)), 0);
  ASSERT_EQ(writer_.have(), 5U);
  stop_ = true;
  ContentDigest digest;
  EXPECT_EQ(writer_.read_back(digest, whom_), -ECANCELED);
}

TEST_F(FileWriterTest, a_time_is_kept_to_the_nanosecond_where_it_is_to_be_kept) {
  write("file", "x", resumed(1));
  EXPECT_EQ(status("file").st_mtim.tv_sec, 1'600'000'000);
  EXPECT_EQ(status("file").st_mtim.tv_nsec, 5);
  write("other", "x", file_of(1));
  EXPECT_GT(status("other").st_mtim.tv_sec, 1'700'000'000);
}

TEST_F(FileWriterTest, a_discarded_file_leaves_nothing) {
  ASSERT_EQ(open("file", file_of(5)), 0);
  ASSERT_EQ(writer_.append(bytes("hel")), 0);
  writer_.discard();
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(FileWriterTest, an_existing_file_is_replaced_only_by_a_complete_one) {
  write("file", "old", file_of(3));
  ASSERT_EQ(open("file", file_of(3)), 0);
  ASSERT_EQ(writer_.append(bytes("ne")), 0);
  writer_.discard();
  EXPECT_EQ(directory_.content("file"), "old");
  write("file", "new", file_of(3));
  EXPECT_EQ(directory_.content("file"), "new");
}

TEST_F(FileWriterTest, what_cannot_be_written_is_said_before_the_content_comes) {
  EXPECT_EQ(open("file", file_of(std::uint64_t{1} << 62)), -ENOSPC);
  std::filesystem::create_directory(directory_ / "taken");
  EXPECT_EQ(open("taken", file_of(1)), -EISDIR);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"taken"});
}

TEST_F(FileWriterTest, a_symbolic_link_is_replaced_and_not_followed) {
  std::filesystem::create_symlink(directory_ / "victim", directory_ / "file");
  write("file", "x", file_of(1));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "victim"));
  EXPECT_TRUE(
      std::filesystem::is_regular_file(std::filesystem::symlink_status(directory_ / "file")));
}

TEST_F(FileWriterTest, a_broken_transfer_is_resumed_where_it_broke) {
  ASSERT_EQ(open("file", resumed(5)), 0);
  ASSERT_EQ(writer_.append(bytes("hel")), 0);
  writer_.discard();
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));

  ASSERT_EQ(open("file", resumed(5)), 0);
  EXPECT_EQ(writer_.have(), 3U);
  EXPECT_EQ(digest_of_what_is_there(), digest_of("hel"));
  ASSERT_EQ(writer_.go_on_from(3), 0);
  ASSERT_EQ(writer_.append(bytes("lo")), 0);
  ASSERT_EQ(commit(), 0);
  EXPECT_EQ(directory_.content("file"), "hello");
  EXPECT_EQ(directory_.names().size(), 1U);
}

TEST_F(FileWriterTest, what_was_left_is_overwritten_where_the_sender_starts_over) {
  ASSERT_EQ(open("file", resumed(5)), 0);
  ASSERT_EQ(writer_.append(bytes("HEL")), 0);
  writer_.discard();
  write("file", "he", resumed(2));
  EXPECT_EQ(directory_.content("file"), "he");
}

TEST_F(FileWriterTest, a_file_that_seems_the_same_is_offered_whole_and_left_alone) {
  write("file", "hello", resumed(5));
  const auto before = status("file").st_ino;
  ASSERT_EQ(open("file", resumed(5)), 0);
  EXPECT_EQ(writer_.have(), 5U);
  EXPECT_EQ(digest_of_what_is_there(), digest_of("hello"));
  ASSERT_EQ(writer_.go_on_from(5), 0);
  ASSERT_EQ(commit(), 0);
  EXPECT_EQ(status("file").st_ino, before);
}

TEST_F(FileWriterTest, a_file_of_another_time_is_sent_again) {
  write("file", "hello", file_of(5));
  ASSERT_EQ(open("file", resumed(5)), 0);
  EXPECT_EQ(writer_.have(), 0U);
}

TEST_F(FileWriterTest, two_senders_do_not_write_the_same_part) {
  ASSERT_EQ(open("file", resumed(5)), 0);
  FileWriter second;
  EXPECT_EQ(open(second, "file", resumed(5)), -EBUSY);
  ASSERT_EQ(writer_.append(bytes("hello")), 0);
  EXPECT_EQ(commit(), 0);
}

// The part is renamed by the one when the other has opened it and not locked it yet.
TEST_F(FileWriterTest, two_transfers_of_one_name_never_write_the_same_file) {
  constexpr int kRounds = 400;
  std::atomic<int> wrong{0};
  const auto transfer = [&](const std::string& content) {
    const auto metadata = resumed(content.size());
    for (int i = 0; i < kRounds; ++i) {
      FileWriter writer;
      auto error = open(writer, "file", metadata);
      if (error == -EBUSY) continue;
      if (error == 0) error = writer.go_on_from(0);
      if (error == -EBUSY) continue;
      WholeFile file;
      if (error == 0) error = writer.append(bytes(content));
      if (error == 0) error = writer.finish(file);
      if (error == 0 && !file.temporary.empty())
        error = ::renameat(file.directory->get(), file.temporary.c_str(), file.directory->get(),
                           file.name.c_str()) == 0
                    ? 0
                    : -errno;
      if (error != 0) ++wrong;
    }
  };
  std::thread other([&] { transfer("one"); });
  transfer("another");
  other.join();
  EXPECT_EQ(wrong, 0);
}

// A receiver was killed after it had written the file and before it had renamed it.
TEST_F(FileWriterTest, a_complete_part_without_write_permission_is_resumed) {
  const test::Unprivileged unprivileged(directory_.path());
  const std::string content = "content";
  auto metadata = resumed(content.size());
  metadata.mode = 0444;
  ASSERT_EQ(open("file", metadata), 0);
  ASSERT_EQ(writer_.go_on_from(0), 0);
  ASSERT_EQ(writer_.append(bytes(content)), 0);
  WholeFile file;
  ASSERT_EQ(writer_.finish(file), 0);
  file = {};
  ASSERT_EQ(open("file", metadata), 0);
  EXPECT_EQ(writer_.have(), content.size());
}

// Of ramfs, for example.
TEST(Room, is_not_missing_where_a_file_system_has_no_notion_of_blocks) {
  struct statvfs space {};
  space.f_frsize = 4096;
  EXPECT_TRUE(has_room(space, 1));
  space.f_blocks = 100;
  EXPECT_FALSE(has_room(space, 1));
  space.f_bavail = 2;
  EXPECT_TRUE(has_room(space, 4096));
  EXPECT_FALSE(has_room(space, 3 * 4096));
  EXPECT_TRUE(has_room(space, 0));
}

TEST(Helper, works_at_the_same_time) {
  Helper helper;
  for (int i = 0; i < 100; ++i) {
    std::latch both(2);  // each waits for the other
    std::atomic<int> calls{0};
    helper.share([&] {
      ++calls;
      both.arrive_and_wait();
    });
    EXPECT_EQ(calls, 2);
  }
}

TEST(Helper, has_stopped_when_share_returns) {
  Helper helper;
  for (int i = 0; i < 1'000; ++i) {
    std::array<std::atomic<int>, 64> pieces{};
    std::atomic<std::size_t> next{0};
    std::atomic<int> under_way{0};
    helper.share([&] {
      ++under_way;
      for (auto at = next++; at < pieces.size(); at = next++) ++pieces[at];
      --under_way;
    });
    EXPECT_EQ(under_way, 0);
    for (const auto& piece : pieces) EXPECT_EQ(piece, 1);
  }
}

TEST(Helper, that_was_never_asked_ends) {
  const Helper helper;
}

}  // namespace
}  // namespace stp::files
