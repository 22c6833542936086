// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/incoming_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <semaphore>

#include "tests/temporary_directory.h"

namespace stp::files {
namespace {

class IncomingFilesTest : public ::testing::Test {
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
  // Offers a file and returns the last answer.
  Note offer(const Metadata& metadata) {
    std::vector<std::byte> message;
    append_offer(message, metadata);
    answers_.clear();
    ++number_;
    EXPECT_TRUE(files_->offers(message));
    return answers_.empty() ? Note{} : answers_.back();
  }
  Note tell(NoteKind kind, std::uint64_t have = 0, const Digest& digest = {}) {
    return tell(number_, kind, have, digest);
  }
  Note tell(std::uint32_t number, NoteKind kind, std::uint64_t have, const Digest& digest) {
    Note note;
    note.kind = kind;
    note.file = number;
    note.have = have;
    note.digest = digest;
    answers_.clear();
    understood_ = files_->told(note);
    if (kind == NoteKind::kSettle) files_->settle();
    return answers_.empty() ? Note{} : answers_.back();
  }
  // As tell() of kSettle, but does not wait for the disk.
  void ask_to_settle() {
    Note note;
    note.kind = NoteKind::kSettle;
    answers_.clear();
    EXPECT_TRUE(files_->told(note));
  }
  Note append(const std::string& text) {
    answers_.clear();
    files_->content(bytes(text));
    return answers_.empty() ? Note{} : answers_.back();
  }
  // Commits the file and returns the answer when all is settled.
  Note commit(const std::string& expected) {
    const auto note = tell(NoteKind::kCommit, expected.size(), digest_of(expected));
    if (note.reason != Reason::kNone) return note;
    return tell(NoteKind::kSettle);
  }
  Reason begin(const std::string& path, std::uint64_t size) {
    const auto reason = offer(file(path, size)).reason;
    return reason == Reason::kNone ? tell(NoteKind::kGo).reason : reason;
  }
  void restart() {
    number_ = 0;
    files_.emplace(
        out_, progress_, stop_, [this](const Note& note) { answers_.push_back(note); },
        [this] { settled_.release(); });
  }
  static void pack(std::vector<std::byte>& message, std::uint32_t number,
                   const std::string& content, const Digest& digest) {
    const auto at = message.size();
    message.resize(at + kPackHead);
    put_pack_head(std::span(message).subspan(at), number, content.size(), digest);
    const auto from = bytes(content);
    message.insert(message.end(), from.begin(), from.end());
  }

  test::TemporaryDirectory directory_;
  std::string out_ = directory_.path();
  Progress progress_{"test", true};
  std::atomic<bool> stop_{false};
  std::vector<Note> answers_;
  bool understood_ = true;
  std::uint32_t number_ = 0;
  std::counting_semaphore<> settled_{0};  // batches that can be collected
  std::optional<IncomingFiles> files_;

  IncomingFilesTest() { restart(); }
};

TEST_F(IncomingFilesTest, a_file_with_the_right_digest_gets_its_name) {
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  EXPECT_EQ(files_->name_under_way(), "file");
  ASSERT_EQ(append("hel").reason, Reason::kNone);
  ASSERT_EQ(append("lo").reason, Reason::kNone);
  const auto note = commit("hello");
  EXPECT_EQ(note.kind, NoteKind::kDone);
  EXPECT_EQ(note.file, 1U);
  EXPECT_EQ(note.have, 1U);
  EXPECT_EQ(directory_.content("file"), "hello");
  EXPECT_EQ(directory_.names().size(), 1U);
}

TEST_F(IncomingFilesTest, an_empty_file_is_a_file) {
  ASSERT_EQ(begin("file", 0), Reason::kNone);
  EXPECT_EQ(commit("").reason, Reason::kNone);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(IncomingFilesTest, a_wrong_digest_or_a_missing_or_further_byte_leaves_nothing) {
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  ASSERT_EQ(append("hellO").reason, Reason::kNone);
  EXPECT_EQ(commit("hello").reason, Reason::kDigest);
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  ASSERT_EQ(append("hell").reason, Reason::kNone);
  EXPECT_EQ(commit("hell").reason, Reason::kDigest);
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  EXPECT_EQ(append("hello!").reason, Reason::kProtocol);
  EXPECT_EQ(append("passed over").reason, Reason::kNone);
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFilesTest, names_and_sizes_that_cannot_be_are_refused_at_once) {
  EXPECT_EQ(begin("..", 5), Reason::kName);
  EXPECT_EQ(begin("a/../../b", 5), Reason::kName);
  EXPECT_EQ(begin("a\nb", 5), Reason::kName);
  EXPECT_EQ(begin("file", std::uint64_t{1} << 62), Reason::kNoSpace);
  EXPECT_FALSE(files_->offers(bytes("garbage")));
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFilesTest, a_sender_that_offers_without_end_is_not_heard_any_further) {
  const auto fill = [this](const Metadata& metadata) {
    std::vector<std::byte> message;
    append_offer(message, metadata);
    std::size_t taken = 0;
    while (taken <= kMostOffered && files_->offers(message)) ++taken;
    return taken;
  };
  EXPECT_EQ(fill(file("file", 1)), kMostOffered);
  restart();
  std::string path(200, 'd');
  while (path.size() < 3'900) path += "/" + std::string(200, 'd');
  const auto taken = fill(file(path, 1));
  EXPECT_LT(taken, kMostOffered);
  EXPECT_LE(taken * path.size(), kMostOfferedBytes);
}

TEST_F(IncomingFilesTest, what_belongs_to_no_offer_or_out_of_order_is_not_understood) {
  tell(1, NoteKind::kGo, 0, {});
  EXPECT_FALSE(understood_);
  ASSERT_EQ(begin("one", 5), Reason::kNone);
  offer(file("two", 5));
  tell(2, NoteKind::kGo, 0, {});
  EXPECT_FALSE(understood_) << "the first one has not ended";
  tell(2, NoteKind::kCommit, 5, {});
  EXPECT_FALSE(understood_) << "it has not begun";
  tell(1, NoteKind::kWanted, 5, {});
  EXPECT_FALSE(understood_);
  std::vector<std::byte> message;
  pack(message, 3, "x", digest_of("x"));
  EXPECT_FALSE(files_->pack(message));
  message.clear();
  pack(message, 2, "longer than it was said", digest_of("longer than it was said"));
  EXPECT_FALSE(files_->pack(message));
  message.clear();
  pack(message, 2, "12345", digest_of("12345"));
  EXPECT_FALSE(files_->pack(std::span(message).first(message.size() - 1)));
}

TEST_F(IncomingFilesTest, files_of_a_pack_get_their_names_when_they_are_settled) {
  std::vector<std::byte> message;
  for (std::uint32_t number = 1; number <= 20; ++number) {
    EXPECT_EQ(offer(file("d/f" + std::to_string(number), 5)).kind, NoteKind::kWanted);
    pack(message, number, "hello", digest_of(number == 7 ? "hellO" : "hello"));
  }
  auto metadata = directory("d");
  offer(metadata);
  ASSERT_TRUE(files_->pack(message));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "d/f1"));
  EXPECT_EQ(answers_.back().kind, NoteKind::kFailed);
  EXPECT_EQ(answers_.back().file, 7U);
  tell(NoteKind::kSettle);
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(answers_[0].file, 1U);
  EXPECT_EQ(answers_[0].have, 6U);
  EXPECT_EQ(answers_[1].file, 8U);
  EXPECT_EQ(answers_[1].have, 14U) << "and the directory, which comes after all of them";
  EXPECT_EQ(directory_.content("d/f20"), "hello");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ / "d"), {}), 19);
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "d").c_str(), &found), 0);
  EXPECT_EQ(found.st_mtim.tv_sec, 1'500'000'000);
}

// The file is answered when the disk has it; until then the next one is taken.
TEST_F(IncomingFilesTest, nobody_waits_for_the_disk_while_files_are_settled) {
  offer(file("one", 5));
  std::vector<std::byte> message;
  pack(message, 1, "hello", digest_of("hello"));
  ASSERT_TRUE(files_->pack(message));
  ask_to_settle();
  EXPECT_TRUE(answers_.empty());
  EXPECT_TRUE(files_->is_settling());
  EXPECT_EQ(offer(file("two", 5)).kind, NoteKind::kWanted);
  message.clear();
  pack(message, 2, "hello", digest_of("hello"));
  ASSERT_TRUE(files_->pack(message));
  answers_.clear();
  settled_.acquire();
  files_->collect();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].kind, NoteKind::kDone);
  EXPECT_EQ(answers_[0].file, 1U);
  EXPECT_EQ(answers_[0].have, 1U);
  EXPECT_FALSE(files_->is_settling());
  EXPECT_EQ(directory_.content("one"), "hello");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "two"));
  tell(NoteKind::kSettle);
  EXPECT_EQ(directory_.content("two"), "hello");
}

TEST_F(IncomingFilesTest, a_directory_waits_for_files_that_are_being_settled) {
  offer(file("d/one", 5));
  std::vector<std::byte> message;
  pack(message, 1, "hello", digest_of("hello"));
  ASSERT_TRUE(files_->pack(message));
  ask_to_settle();
  offer(directory("d"));
  EXPECT_TRUE(answers_.empty());
  tell(NoteKind::kSettle);
  EXPECT_EQ(answers_.size(), 2U);
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "d").c_str(), &found), 0);
  EXPECT_EQ(found.st_mtim.tv_sec, 1'500'000'000);
}

TEST_F(IncomingFilesTest, a_pack_for_many_directories_arrives_and_each_file_is_answered_once) {
  constexpr std::uint32_t kFiles = 600, kBad = 77;
  const auto path = [](std::uint32_t number) {
    return "d" + std::to_string(number / 20) + "/f" + std::to_string(number);
  };
  std::vector<std::byte> message;
  for (std::uint32_t number = 1; number <= kFiles; ++number) {
    const auto content = std::to_string(number);
    ASSERT_EQ(offer(file(path(number), content.size())).kind, NoteKind::kWanted);
    pack(message, number, content, digest_of(number == kBad ? "other" : content));
    if (number % 50 == 0) pack(message, number, content, digest_of(content));  // a second time
  }
  answers_.clear();
  ASSERT_TRUE(files_->pack(message));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].file, kBad);
  EXPECT_EQ(answers_[0].reason, Reason::kDigest);
  EXPECT_TRUE(files_->is_settling()) << "so many files do not wait until the sender asks";
  tell(NoteKind::kSettle);
  std::uint32_t next = 1;
  for (const auto& note : answers_) {
    EXPECT_EQ(note.kind, NoteKind::kDone);
    EXPECT_EQ(note.file, next);
    next = note.file + static_cast<std::uint32_t>(note.have);
    if (next == kBad) ++next;
  }
  EXPECT_EQ(next, kFiles + 1);
  for (std::uint32_t number = 1; number <= kFiles; ++number)
    EXPECT_EQ(directory_.content(path(number)), number == kBad ? "" : std::to_string(number));
}

// Reading the umask means setting it, and another thread may be making a file meanwhile.
TEST_F(IncomingFilesTest, the_umask_is_read_before_files_are_made) {
  const auto before = ::umask(0777);
  EXPECT_EQ(permitted(0777), 0777U & ~before);
  ::umask(before);
}

TEST_F(IncomingFilesTest, whole_files_without_a_name_leave_nothing_behind) {
  offer(file("file", 5));
  std::vector<std::byte> message;
  pack(message, 1, "hello", digest_of("hello"));
  ASSERT_TRUE(files_->pack(message));
  EXPECT_EQ(directory_.names().size(), 1U);
  files_.reset();
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFilesTest, a_file_of_the_same_size_and_time_is_done_without_its_content) {
  auto metadata = file("file", 5);
  metadata.resume = metadata.keep_times = true;
  metadata.modified = {1'600'000'000, 5};
  ASSERT_EQ(offer(metadata).kind, NoteKind::kWanted);
  std::vector<std::byte> message;
  pack(message, 1, "hello", digest_of("hello"));
  ASSERT_TRUE(files_->pack(message));
  tell(NoteKind::kSettle);

  metadata.mode = 0600;
  EXPECT_EQ(offer(metadata).kind, NoteKind::kDone);
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "file").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  // With --checksum the digest is compared, whatever the time of the file.
  metadata.checksum = true;
  metadata.modified.tv_sec = 1'700'000'000;
  const auto note = offer(metadata);
  EXPECT_EQ(note.kind, NoteKind::kWanted);
  EXPECT_EQ(note.have, 5U);
  EXPECT_EQ(note.digest, digest_of("hello"));
  metadata.checksum = false;
  EXPECT_EQ(offer(metadata).have, 0U);
  metadata.size = 6;
  EXPECT_EQ(offer(metadata).kind, NoteKind::kWanted);
}

TEST_F(IncomingFilesTest, a_stream_has_the_size_that_its_end_says) {
  auto metadata = file("stream", 0);
  metadata.stream = true;
  ASSERT_EQ(offer(metadata).kind, NoteKind::kWanted);
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  ASSERT_EQ(append("hello").reason, Reason::kNone);
  ASSERT_EQ(append(" world").reason, Reason::kNone);
  EXPECT_EQ(commit("hello world").reason, Reason::kNone);
  EXPECT_EQ(directory_.content("stream"), "hello world");
}

TEST_F(IncomingFilesTest, only_some_are_compared_at_once_and_the_others_have_their_turn) {
  constexpr std::uint32_t kFiles = 20;
  auto metadata = file("", 100'000);
  metadata.resume = true;
  for (std::uint32_t i = 1; i <= kFiles; ++i) {
    metadata.path = "f" + std::to_string(i);
    ASSERT_EQ(offer(metadata).kind, NoteKind::kWanted);
    ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
    ASSERT_EQ(append("begun").reason, Reason::kNone);
    files_->end(Reason::kTimeout);
  }
  restart();
  unsigned wanted = 0;
  for (std::uint32_t i = 1; i <= kFiles; ++i) {
    metadata.path = "f" + std::to_string(i);
    offer(metadata);
    for (const auto& note : answers_) wanted += note.have == 5 ? 1 : 0;
  }
  EXPECT_LT(wanted, kFiles);
  for (std::uint32_t i = 1; i <= kFiles; ++i) {
    tell(i, NoteKind::kAbandon, 0, {});
    for (const auto& note : answers_) wanted += note.have == 5 ? 1 : 0;
  }
  EXPECT_EQ(wanted, kFiles);
}

TEST_F(IncomingFilesTest, directories_on_the_way_are_made_and_get_their_mode_and_time_in_the_end) {
  ASSERT_EQ(begin("a/b/file", 1), Reason::kNone);
  ASSERT_EQ(append("x").reason, Reason::kNone);
  ASSERT_EQ(commit("x").reason, Reason::kNone);
  EXPECT_EQ(offer(directory("a/b")).kind, NoteKind::kDone);
  EXPECT_EQ(directory_.content("a/b/file"), "x");
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "a/b").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0750U & permitted(0777));
  EXPECT_EQ(found.st_mtim.tv_sec, 1'500'000'000);
}

TEST_F(IncomingFilesTest, a_symbolic_link_is_copied_as_a_link) {
  ASSERT_EQ(offer(link("link", "nowhere/at/all")).kind, NoteKind::kDone);
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "link"), "nowhere/at/all");
  ASSERT_EQ(offer(link("link", "elsewhere")).kind, NoteKind::kDone);
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "link"), "elsewhere");
  EXPECT_EQ(directory_.names().size(), 1U);
}

TEST_F(IncomingFilesTest, nothing_is_written_through_a_link_that_a_sender_has_made) {
  const test::TemporaryDirectory outside;
  ASSERT_EQ(offer(link("way", outside.path())).kind, NoteKind::kDone);
  const auto note = offer(file("way/file", 1));
  EXPECT_EQ(note.reason, Reason::kWrite);
  EXPECT_EQ(note.error, ENOTDIR);
  EXPECT_EQ(offer(directory("way")).reason, Reason::kWrite);
  EXPECT_TRUE(outside.names().empty());
}

// It was a directory when the file was offered.
TEST_F(IncomingFilesTest, a_link_in_the_place_of_a_directory_is_not_followed_later_either) {
  const test::TemporaryDirectory outside;
  offer(file("way/file", 5));
  offer(file("other", 5));
  std::filesystem::remove(directory_ / "way");
  std::filesystem::create_directory_symlink(outside.path(), directory_ / "way");
  std::vector<std::byte> message;
  pack(message, 2, "hello", digest_of("hello"));
  pack(message, 1, "hello", digest_of("hello"));
  ASSERT_TRUE(files_->pack(message));
  tell(NoteKind::kSettle);
  EXPECT_TRUE(outside.names().empty());
  EXPECT_EQ(files_->failures(), 1U);
  EXPECT_EQ(directory_.content("other"), "hello");
}

TEST_F(IncomingFilesTest, what_is_there_of_a_broken_transfer_is_told_with_its_digest) {
  std::string const content(100'000, 'c');
  auto metadata = file("file", content.size());
  metadata.resume = true;
  ASSERT_EQ(offer(metadata).have, 0U);
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  ASSERT_EQ(append(content.substr(0, 3)).reason, Reason::kNone);
  EXPECT_TRUE(files_->end(Reason::kTimeout));
  EXPECT_EQ(answers_.back().reason, Reason::kTimeout);

  auto note = offer(metadata);
  EXPECT_EQ(note.have, 3U);
  EXPECT_EQ(note.digest, digest_of("ccc"));
  EXPECT_TRUE(files_->is_compared());
  EXPECT_EQ(tell(NoteKind::kGo, 2).reason, Reason::kProtocol);
  EXPECT_FALSE(files_->is_compared());
  EXPECT_EQ(offer(metadata).have, 3U);
  ASSERT_EQ(tell(NoteKind::kGo, 3).reason, Reason::kNone);
  ASSERT_EQ(append(content.substr(3)).reason, Reason::kNone);
  EXPECT_EQ(commit(content).reason, Reason::kNone);
  EXPECT_EQ(directory_.content("file"), content);
}

TEST_F(IncomingFilesTest, a_resumed_file_that_came_out_wrong_begins_anew_the_next_time) {
  auto metadata = file("file", 100'000);
  metadata.resume = true;
  ASSERT_EQ(offer(metadata).kind, NoteKind::kWanted);
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  ASSERT_EQ(append(std::string(100'000, 'w')).reason, Reason::kNone);
  ASSERT_EQ(commit(std::string(100'000, 'r')).reason, Reason::kDigest);
  EXPECT_EQ(offer(metadata).have, 0U);
}

TEST(ContentDigest, is_the_published_one) {
  // XXH3-128 of no bytes, from the reference implementation.
  const Digest empty{0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                     0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
  EXPECT_EQ(ContentDigest().value(), empty);
}

}  // namespace
}  // namespace stp::files
