// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/incoming_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/temporary_directory.h"

namespace stp::files {
namespace {

class IncomingFileTest : public ::testing::Test {
 protected:
  static std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  static Digest digest_of(const std::string& text) {
    ContentDigest digest;
    digest.add(bytes(text));
    return digest.value();
  }
  static Metadata file(const std::string& path, std::uint64_t size) {
    Metadata metadata;
    metadata.path = path;
    metadata.size = size;
    metadata.mode = 0644;
    return metadata;
  }
  static Metadata directory(const std::string& path) {
    auto metadata = file(path, 0);
    metadata.kind = FileKind::kDirectory;
    metadata.mode = 0750;
    metadata.keep_times = true;
    metadata.modified = {1'500'000'000, 7};
    return metadata;
  }
  static Metadata link(const std::string& path, const std::string& target) {
    auto metadata = file(path, target.size());
    metadata.kind = FileKind::kSymbolicLink;
    metadata.target = target;
    return metadata;
  }
  Note announce(const Metadata& metadata) { return file_.announce(encode(metadata)); }
  Reason begin(const std::string& path, std::uint64_t size) {
    auto const reason = announce(file(path, size)).reason;
    return reason == Reason::kNone ? file_.go_on_from(0).reason : reason;
  }

  test::TemporaryDirectory directory_;
  std::string out_ = directory_.path();
  Progress progress_{"test", true};
  std::atomic<bool> stop_{false};
  IncomingFile file_{out_, progress_, stop_};
};

TEST_F(IncomingFileTest, a_file_with_the_right_digest_gets_its_name) {
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hel")).reason, Reason::kNone);
  EXPECT_EQ(file_.missing(), 2U);
  ASSERT_EQ(file_.append(bytes("lo")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hello")).reason, Reason::kNone);
  EXPECT_EQ(directory_.content("file"), "hello");
}

TEST_F(IncomingFileTest, an_empty_file_is_a_file) {
  ASSERT_EQ(begin("file", 0), Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("")).reason, Reason::kNone);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(IncomingFileTest, a_wrong_digest_or_a_missing_byte_leaves_nothing) {
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hellO")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hello")).reason, Reason::kDigest);
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hell")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hell")).reason, Reason::kDigest);
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFileTest, names_and_sizes_that_cannot_be_are_refused_at_once) {
  EXPECT_EQ(begin("..", 5), Reason::kName);
  EXPECT_EQ(begin("a/../../b", 5), Reason::kName);
  EXPECT_EQ(begin("a\nb", 5), Reason::kName);
  EXPECT_EQ(begin("file", std::uint64_t{1} << 62), Reason::kNoSpace);
  EXPECT_EQ(file_.announce(bytes("garbage")).reason, Reason::kProtocol);
  EXPECT_FALSE(file_.under_way());
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFileTest, a_new_announcement_discards_what_was_under_way) {
  ASSERT_EQ(begin("one", 5), Reason::kNone);
  ASSERT_EQ(begin("two", 1), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("2")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("2")).reason, Reason::kNone);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"two"});
}

TEST_F(IncomingFileTest, directories_on_the_way_are_made_and_get_their_mode_and_time_in_the_end) {
  ASSERT_EQ(begin("a/b/file", 1), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("x")).reason, Reason::kNone);
  ASSERT_EQ(file_.commit(digest_of("x")).reason, Reason::kNone);
  ASSERT_EQ(announce(directory("a/b")).reason, Reason::kNone);
  EXPECT_EQ(directory_.content("a/b/file"), "x");
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "a/b").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0750U);
  EXPECT_EQ(found.st_mtim.tv_sec, 1'500'000'000);
}

TEST_F(IncomingFileTest, a_symbolic_link_is_copied_as_a_link) {
  ASSERT_EQ(announce(link("link", "nowhere/at/all")).reason, Reason::kNone);
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "link"), "nowhere/at/all");
  ASSERT_EQ(announce(link("link", "elsewhere")).reason, Reason::kNone);
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "link"), "elsewhere");
  EXPECT_EQ(directory_.names().size(), 1U);
}

TEST_F(IncomingFileTest, nothing_is_written_through_a_link_that_a_sender_has_made) {
  test::TemporaryDirectory const outside;
  ASSERT_EQ(announce(link("way", outside.path())).reason, Reason::kNone);
  auto const note = announce(file("way/file", 1));
  EXPECT_EQ(note.reason, Reason::kWrite);
  EXPECT_EQ(note.error, ENOTDIR);
  EXPECT_EQ(announce(directory("way")).reason, Reason::kWrite);
  EXPECT_TRUE(outside.names().empty());
}

TEST_F(IncomingFileTest, what_is_there_of_a_broken_transfer_is_told_with_its_digest) {
  auto metadata = file("file", 5);
  metadata.resume = true;
  ASSERT_EQ(announce(metadata).have, 0U);
  ASSERT_EQ(file_.go_on_from(0).reason, Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hel")).reason, Reason::kNone);
  file_.discard();

  auto const note = announce(metadata);
  EXPECT_EQ(note.have, 3U);
  EXPECT_EQ(note.digest, digest_of("hel"));
  EXPECT_EQ(file_.go_on_from(2).reason, Reason::kProtocol);
  ASSERT_EQ(file_.go_on_from(3).reason, Reason::kNone);
  ASSERT_EQ(file_.append(bytes("lo")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hello")).reason, Reason::kNone);
  EXPECT_EQ(directory_.content("file"), "hello");
}

TEST_F(IncomingFileTest, a_resumed_file_that_came_out_wrong_begins_anew_the_next_time) {
  auto metadata = file("file", 5);
  metadata.resume = true;
  ASSERT_EQ(announce(metadata).reason, Reason::kNone);
  ASSERT_EQ(file_.go_on_from(0).reason, Reason::kNone);
  ASSERT_EQ(file_.append(bytes("wrong")).reason, Reason::kNone);
  ASSERT_EQ(file_.commit(digest_of("hello")).reason, Reason::kDigest);
  EXPECT_EQ(announce(metadata).have, 0U);
}

TEST(ContentDigest, is_the_published_one) {
  // XXH3-128 of no bytes, as its reference implementation states it.
  Digest const empty{0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                     0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
  EXPECT_EQ(ContentDigest().value(), empty);
}

}  // namespace
}  // namespace stp::files
