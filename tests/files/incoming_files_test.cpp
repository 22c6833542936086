// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <semaphore>

#include "tests/files/limited_descriptors.h"
#include "tests/temporary_directory.h"
#include "tests/unprivileged.h"

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
  void restart(const Descriptors& most = {}) {
    number_ = 0;
    files_.emplace(
        out_, progress_, stop_, WorkFor{turns_, "", [this] { return !stop_; }},
        [this](const Note& note) { answers_.push_back(note); }, [this] { settled_.release(); },
        most);
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
  Turns turns_;
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

TEST_F(IncomingFilesTest, many_directories_need_only_as_many_descriptors_as_there_may_be) {
  constexpr std::uint32_t kFiles = 48;
  restart({6, 6, 2, 1, 2});
  const test::LimitedDescriptors limited(40);
  std::vector<std::byte> message;
  for (std::uint32_t number = 1; number <= kFiles; ++number) {
    const auto path = "d" + std::to_string(number) + "/file";
    ASSERT_EQ(offer(file(path, 7)).kind, NoteKind::kWanted);
    pack(message, number, "content", digest_of("content"));
  }
  ASSERT_TRUE(files_->pack(message));
  for (std::uint32_t number = 1; number <= kFiles; ++number)
    offer(directory("d" + std::to_string(number)));
  tell(NoteKind::kSettle);
  EXPECT_EQ(files_->files(), 2 * kFiles);
  EXPECT_EQ(files_->failures(), 0U);
}

TEST(Descriptors, of_all_senders_stay_within_the_limit_of_the_process) {
  for (const std::size_t limit : {512U, 1'024U, 4'096U, 1'048'576U}) {
    const auto most = descriptors_within(limit, 16);
    const auto each = 3 * most.directories + most.small_files + 2 * most.open_files + most.few +
                      3 * most.compared;
    EXPECT_LE(128 + 16 * each, limit);
  }
  EXPECT_EQ(descriptors_within(1'048'576, 16).directories, Descriptors().directories);
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

TEST_F(IncomingFilesTest, a_file_that_changed_at_the_sender_begins_anew_with_its_new_size) {
  for (const std::size_t begun : {0U, 3U}) {
    ASSERT_EQ(offer(file("file", 5)).kind, NoteKind::kWanted);
    if (begun != 0) {
      ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
      ASSERT_EQ(append("hel").reason, Reason::kNone);
    }
    auto metadata = file("", 7);
    metadata.mode = 0600;
    ASSERT_TRUE(files_->changed(encode_changed(number_, metadata)));
    EXPECT_EQ(files_->name_under_way(), "");
    ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
    ASSERT_EQ(append("changed").reason, Reason::kNone);
    EXPECT_EQ(commit("changed").kind, NoteKind::kDone);
    EXPECT_EQ(directory_.content("file"), "changed");
    struct stat found {};
    ASSERT_EQ(::stat((directory_ / "file").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
    EXPECT_EQ(directory_.names().size(), 1U);
  }
}

TEST_F(IncomingFilesTest, a_change_of_nothing_that_was_offered_is_not_understood) {
  EXPECT_FALSE(files_->changed(encode_changed(1, file("", 7))));
  offer(file("file", 5));
  EXPECT_FALSE(files_->changed(encode_changed(0, file("", 7))));
  EXPECT_FALSE(files_->changed(bytes("garbage")));
  auto message = encode_changed(1, file("", 7));
  message.pop_back();
  EXPECT_FALSE(files_->changed(message));
  EXPECT_TRUE(files_->changed(encode_changed(1, file("", 7))));
}

// It was written already.
TEST_F(IncomingFilesTest, a_file_that_changed_fails_when_a_part_went_to_a_sink) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const os::UniqueFd out(ends[0]), in(ends[1]);
  files_->write_to(in.get());
  offer(file("file", 5));
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  append("hel");
  answers_.clear();
  ASSERT_TRUE(files_->changed(encode_changed(1, file("", 7))));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].reason, Reason::kDigest);
}

TEST_F(IncomingFilesTest, a_hole_is_left_in_the_file) {
  constexpr std::uint64_t kHole = 1 << 20;
  for (const bool at_the_end : {false, true}) {
    const auto size = kHole + (at_the_end ? 2 : 4);
    ASSERT_EQ(begin("file", size), Reason::kNone);
    ContentDigest digest;
    append("ab");
    digest.add(bytes("ab"));
    EXPECT_EQ(tell(NoteKind::kHole, kHole).reason, Reason::kNone);
    EXPECT_TRUE(understood_);
    digest.add_hole(kHole);
    if (!at_the_end) {
      append("cd");
      digest.add(bytes("cd"));
    }
    ASSERT_EQ(tell(NoteKind::kCommit, size, digest.value()).reason, Reason::kNone);
    EXPECT_EQ(tell(NoteKind::kSettle).kind, NoteKind::kDone);
    EXPECT_EQ(directory_.content("file"),
              "ab" + std::string(kHole, '\0') + (at_the_end ? "" : "cd"));
    struct stat found {};
    ASSERT_EQ(::stat((directory_ / "file").c_str(), &found), 0);
    EXPECT_LT(static_cast<std::uint64_t>(found.st_blocks) * 512, kHole / 2);
  }
}

TEST_F(IncomingFilesTest, a_hole_that_cannot_be_is_refused) {
  ASSERT_EQ(begin("file", 5), Reason::kNone);
  EXPECT_EQ(tell(NoteKind::kHole, 6).reason, Reason::kProtocol);
  tell(NoteKind::kHole, 1);
  EXPECT_TRUE(understood_) << "the file has failed";
  ASSERT_EQ(begin("file", kMostHole / 4), Reason::kNone);
  for (const std::uint64_t length : {std::uint64_t{0}, kMostHole + 1}) {
    tell(NoteKind::kHole, length);
    EXPECT_FALSE(understood_) << length;
  }
  offer(file("other", 5));
  tell(NoteKind::kHole, 1);
  EXPECT_FALSE(understood_) << "its content has not begun";
}

TEST_F(IncomingFilesTest, a_sink_gets_the_zeros_of_a_hole) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const os::UniqueFd out(ends[0]), in(ends[1]);
  files_->write_to(in.get());
  offer(file("file", 100));
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  append("ab");
  EXPECT_EQ(tell(NoteKind::kHole, 98).reason, Reason::kNone);
  std::string got(100, ' ');
  EXPECT_EQ(::read(out.get(), got.data(), got.size()), 100);
  EXPECT_EQ(got, "ab" + std::string(98, '\0'));
}

// It is no directory in which there could be too little space.
TEST_F(IncomingFilesTest, a_sink_that_is_full_is_told_by_its_error) {
  const os::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  files_->write_to(full.get());
  offer(file("file", 5));
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  testing::internal::CaptureStderr();
  auto note = append("hello");
  if (note.reason == Reason::kNone) note = commit("hello");
  EXPECT_EQ(testing::internal::GetCapturedStderr().find(
                "test: file: standard output cannot be written: No space left on device; "),
            0U);
  EXPECT_EQ(note.reason, Reason::kWrite);
  EXPECT_EQ(note.error, ENOSPC);
}

TEST_F(IncomingFilesTest, of_what_is_offered_dry_nothing_is_done) {
  const auto ask = [this](Metadata metadata) {
    metadata.dry = true;
    const auto note = offer(metadata);
    if (note.kind == NoteKind::kWanted) tell(NoteKind::kAbandon);
    return note.kind;
  };
  const auto kinds = [&] {
    auto same = file("d/file", 5);
    same.resume = same.keep_times = true;
    same.modified = {1'600'000'000, 5};
    auto other = same;
    other.modified.tv_sec = 1;
    auto compared = other;
    compared.checksum = true;
    auto target = link("d/link", "nowhere");
    target.keep_times = true;
    target.modified = same.modified;
    return std::vector{ask(same), ask(other), ask(compared), ask(target), ask(directory("d"))};
  };
  constexpr auto kWanted = NoteKind::kWanted, kDone = NoteKind::kDone;
  EXPECT_EQ(kinds(), std::vector(5, kWanted));
  EXPECT_TRUE(directory_.names().empty());
  EXPECT_EQ(files_->failures(), 0U);

  auto metadata = file("d/file", 5);
  metadata.resume = metadata.keep_times = true;
  metadata.modified = {1'600'000'000, 5};
  offer(metadata);
  tell(NoteKind::kGo);
  append("hello");
  commit("hello");
  auto target = link("d/link", "nowhere");
  target.keep_times = true;
  target.modified = metadata.modified;
  offer(target);
  EXPECT_EQ(kinds(), (std::vector{kDone, kWanted, kWanted, kDone, kDone}));
  metadata.checksum = metadata.dry = true;
  EXPECT_EQ(offer(metadata).digest, digest_of("hello"));
  tell(NoteKind::kGo);
  EXPECT_FALSE(understood_) << "no content may follow";
  for (const auto& below : {directory("d/file"), file("d/file/below", 1), directory("d/file/deep")})
    EXPECT_EQ(ask(below), kWanted) << "as a directory replaces a file";
  EXPECT_EQ(ask(file("d/link/below", 1)), NoteKind::kFailed) << "but no link";
  EXPECT_EQ(files_->failures(), 0U) << "nothing was to come";
  EXPECT_EQ(directory_.content("d/file"), "hello");
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

// A receiver without privileges made it so itself the first time.
// Hard links.
class FurtherNamesTest : public IncomingFilesTest {
 protected:
  static Metadata first(const std::string& path, std::uint64_t size) {
    auto metadata = file(path, size);
    metadata.keep_times = metadata.resume = metadata.more_names = true;
    metadata.modified = {1'500'000'000, 7};
    return metadata;
  }
  static Metadata further(const std::string& path, std::uint64_t size, std::uint32_t number) {
    auto metadata = first(path, size);
    metadata.more_names = false;
    metadata.first = number;
    return metadata;
  }
  Note send(const Metadata& metadata, const std::string& content) {
    offer(metadata);
    tell(NoteKind::kGo);
    append(content);
    return tell(NoteKind::kCommit, content.size(), digest_of(content));
  }
  [[nodiscard]] bool are_one(const std::string& name, const std::string& other) const {
    return std::filesystem::equivalent(directory_ / name, directory_ / other);
  }
  [[nodiscard]] std::size_t temporaries() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path()))
      count += entry.path().filename().string().starts_with(kTemporaryPrefix) ? 1 : 0;
    return count;
  }
};

// It is settled after the file itself, and the sender asks only once.
TEST_F(FurtherNamesTest, a_further_name_becomes_one_of_the_file_that_came) {
  send(first("d/a", 3), "abc");
  offer(further("e/b", 3, 1));
  ask_to_settle();
  for (const auto number : {1U, 2U}) {
    settled_.acquire();
    answers_.clear();
    files_->collect();
    ASSERT_EQ(answers_.size(), 1U);
    EXPECT_EQ(std::make_pair(answers_[0].kind, answers_[0].file),
              std::make_pair(NoteKind::kDone, number));
  }
  EXPECT_TRUE(are_one("d/a", "e/b"));
  EXPECT_EQ(temporaries(), 0U);
}

// The file is found unchanged, and one of the names is there.
TEST_F(FurtherNamesTest, the_next_time_only_names_that_are_missing_are_added) {
  send(first("a", 3), "abc");
  tell(NoteKind::kSettle);
  restart();
  std::filesystem::create_hard_link(directory_ / "a", directory_ / "b");
  ASSERT_EQ(offer(first("a", 3)).kind, NoteKind::kDone);
  auto second = further("b", 3, 1);
  second.more_names = true;
  offer(second);
  offer(further("c", 3, 1));
  const auto done = tell(NoteKind::kSettle);
  EXPECT_EQ(done.file + done.have, 4U);
  EXPECT_TRUE(are_one("a", "b"));
  EXPECT_TRUE(are_one("a", "c"));
  EXPECT_EQ(temporaries(), 0U);
}

TEST_F(FurtherNamesTest, what_is_no_name_of_a_file_that_came_is_wanted_as_a_file) {
  offer(first("failed", 3));
  tell(NoteKind::kAbandon);
  for (const auto number : {1U, 3U, 4U, 77U}) {  // itself, later ones
    EXPECT_EQ(offer(further("b", 3, number)).kind, NoteKind::kWanted) << number;
    tell(NoteKind::kAbandon);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "b"));
}

TEST_F(FurtherNamesTest, a_file_that_changed_gets_no_further_name) {
  offer(first("a", 3));
  offer(further("b", 3, 1));
  answers_.clear();
  ASSERT_TRUE(files_->changed(encode_changed(1, first("", 4))));
  tell(1, NoteKind::kGo, 0, {});
  append("abcd");
  EXPECT_EQ(tell(1, NoteKind::kCommit, 4, digest_of("abcd")).kind, NoteKind::kWanted);
}

TEST_F(FurtherNamesTest, a_dry_run_tells_which_names_would_become_those_of_one_file) {
  const auto ask = [this](Metadata metadata) {
    metadata.dry = true;
    const auto note = offer(metadata);
    if (note.kind == NoteKind::kWanted) tell(note.file, NoteKind::kAbandon, 0, {});
    return note.kind;
  };
  const auto more = [](const std::string& path) {
    auto metadata = further(path, 3, 3);
    metadata.more_names = true;
    return metadata;
  };
  for (const auto* name : {"a", "copy"}) {
    send(first(name, 3), "abc");
    tell(NoteKind::kSettle);
  }
  std::filesystem::create_hard_link(directory_ / "a", directory_ / "linked");
  EXPECT_EQ(ask(first("a", 3)), NoteKind::kDone);  // the third
  EXPECT_EQ(ask(more("linked")), NoteKind::kDone);
  EXPECT_EQ(ask(more("copy")), NoteKind::kWanted) << "it would become a name of the other";
  EXPECT_EQ(ask(further("none", 3, 3)), NoteKind::kWanted);
  auto newer = first("a", 3);
  newer.modified.tv_sec += 1;
  EXPECT_EQ(ask(newer), NoteKind::kWanted);  // the seventh
  EXPECT_EQ(ask(further("linked", 3, 7)), NoteKind::kWanted) << "the other would be a new file";
}

// Others may write to the directory, too.
TEST_F(FurtherNamesTest, no_name_is_given_to_what_another_program_has_put_there) {
  send(first("a", 3), "abc");
  tell(NoteKind::kSettle);
  std::ofstream(directory_ / "mine") << "xyz";
  std::filesystem::rename(directory_ / "mine", directory_ / "a");
  EXPECT_EQ(offer(further("b", 3, 1)).kind, NoteKind::kWanted);
  EXPECT_EQ(temporaries(), 0U);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "b"));
}

TEST_F(FurtherNamesTest, a_directory_is_no_place_for_a_further_name) {
  std::filesystem::create_directory(directory_ / "d");
  send(first("a", 3), "abc");
  tell(NoteKind::kSettle);
  EXPECT_EQ(offer(further("d", 3, 1)).error, EISDIR);
}

TEST(LinkedFiles, keep_a_bounded_number_of_paths) {
  LinkedFiles files;
  const std::string path(kMaxPathLength, 'x');
  const auto most = LinkedFiles::kMostBytes / path.size() + 1;
  for (std::uint32_t i = 1; i <= most; ++i) files.begin(i, path);
  EXPECT_TRUE(files.is_under_way(1));
  EXPECT_FALSE(files.is_under_way(static_cast<std::uint32_t>(most)));
  files.forget(1);
  files.begin(1, path);
  EXPECT_TRUE(files.is_under_way(1));
}

TEST_F(IncomingFilesTest, what_is_below_a_read_only_directory_is_replaced_the_next_time) {
  const test::Unprivileged unprivileged(out_);
  for (const auto mode : {0555U, 0311U, 0U}) {
    auto below = directory("d");
    below.mode = static_cast<std::uint16_t>(mode);
    for (const std::string content : {"first", "second"}) {
      ASSERT_EQ(begin("d/inner/file", content.size()), Reason::kNone) << mode;
      ASSERT_EQ(append(content).reason, Reason::kNone);
      ASSERT_EQ(commit(content).reason, Reason::kNone);
      ASSERT_EQ(offer(link("d/link", content)).kind, NoteKind::kDone);
      auto inner = below;
      inner.path = "d/inner";
      EXPECT_EQ(offer(inner).kind, NoteKind::kDone);
      EXPECT_EQ(offer(below).kind, NoteKind::kDone);
      struct stat found {};
      ASSERT_EQ(::stat((directory_ / "d").c_str(), &found), 0);
      EXPECT_EQ(found.st_mode & 07777U, permitted(mode));
      restart();
    }
    ::chmod((directory_ / "d").c_str(), 0700);
    ::chmod((directory_ / "d/inner").c_str(), 0700);
    EXPECT_EQ(directory_.content("d/inner/file"), "second");
    EXPECT_EQ(std::filesystem::read_symlink(directory_ / "d/link"), "second");
  }
}

TEST_F(IncomingFilesTest, a_dry_run_looks_into_no_directory_that_is_closed_to_it) {
  const test::Unprivileged unprivileged(out_);
  ASSERT_EQ(begin("d/file", 1), Reason::kNone);
  append("x");
  commit("x");
  auto closed = directory("d");
  closed.mode = 0;
  offer(closed);
  auto metadata = file("d/file", 1);
  metadata.dry = true;
  EXPECT_EQ(offer(metadata).kind, NoteKind::kWanted) << "as it would be sent";
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "d").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0U);
  ::chmod((directory_ / "d").c_str(), 0700);
}

TEST_F(IncomingFilesTest, a_file_gives_way_to_a_directory) {
  ASSERT_EQ(begin("d", 1), Reason::kNone);
  append("x");
  commit("x");
  ASSERT_EQ(begin("d/e/file", 1), Reason::kNone);
  append("y");
  ASSERT_EQ(commit("y").reason, Reason::kNone);
  EXPECT_EQ(offer(directory("d/e/file")).kind, NoteKind::kDone);
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "d/e/file"));
}

TEST_F(IncomingFilesTest, a_file_that_its_owner_may_not_open_gets_another_mode) {
  const test::Unprivileged unprivileged(out_);
  auto metadata = file("file", 5);
  metadata.mode = 0;
  metadata.resume = metadata.keep_times = true;
  metadata.modified = {1'600'000'000, 5};
  ASSERT_EQ(offer(metadata).kind, NoteKind::kWanted);
  ASSERT_EQ(tell(NoteKind::kGo).reason, Reason::kNone);
  append("hello");
  ASSERT_EQ(commit("hello").kind, NoteKind::kDone);
  EXPECT_EQ(offer(metadata).kind, NoteKind::kDone);
  metadata.mode = 0600;
  EXPECT_EQ(offer(metadata).kind, NoteKind::kDone);
  EXPECT_EQ(directory_.content("file"), "hello");
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
  files_->end(Reason::kTimeout);
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

// Its link is not at fault.
TEST_F(IncomingFilesTest, of_a_sender_that_loses_its_place_a_file_is_told_why_it_stops) {
  ASSERT_EQ(begin("file", 100'000), Reason::kNone);
  testing::internal::CaptureStderr();
  files_->end(Reason::kTimeout, EUSERS);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find(
                "test: file: its sender has lost its place to another one"),
            0U);
  EXPECT_EQ(describe(answers_.back()).find("the receiver gave this sender's place to another one"),
            0U);
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
