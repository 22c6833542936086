// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/note.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tools/files/receiver.h"

namespace stp::files {
namespace {

Note sample() {
  Note note;
  note.kind = NoteKind::kCommit;
  note.reason = Reason::kWrite;
  note.error = EIO;
  note.file = 7;
  note.have = 5'000'000'000;
  for (std::size_t i = 0; i < note.digest.size(); ++i)
    note.digest[i] = static_cast<std::uint8_t>(i);
  return note;
}

TEST(Note, comes_out_as_it_went_in) {
  const auto note = decode_note(encode(sample()));
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->kind, NoteKind::kCommit);
  EXPECT_EQ(note->reason, Reason::kWrite);
  EXPECT_EQ(note->error, EIO);
  EXPECT_EQ(note->file, 7U);
  EXPECT_EQ(note->have, 5'000'000'000U);
  EXPECT_EQ(note->digest, sample().digest);
}

TEST(Note, of_another_program_or_version_is_not_understood) {
  EXPECT_FALSE(decode_note(NoteBytes{}));
  auto bytes = encode(sample());
  EXPECT_FALSE(decode_note(std::span(bytes).first(kNoteSize - 1)));
  bytes[5] = std::byte{9};
  EXPECT_FALSE(decode_note(bytes));
}

TEST(Note, with_an_unknown_kind_or_reason_is_not_understood) {
  auto bytes = encode(sample());
  bytes[7] = std::byte{0};
  EXPECT_FALSE(decode_note(bytes));
  bytes[7] = std::byte{10};
  EXPECT_FALSE(decode_note(bytes));
  bytes = encode(sample());
  bytes[9] = std::byte{200};
  EXPECT_FALSE(decode_note(bytes));
}

TEST(Note, several_in_a_message_are_all_understood_or_none_is) {
  std::vector<std::byte> message;
  for (int i = 0; i < 3; ++i) {
    const auto bytes = encode(sample());
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(decode_notes(message).size(), 3U);
  EXPECT_TRUE(decode_notes(std::span(message).first(message.size() - 1)).empty());
  message[2 * kNoteSize] = std::byte{0};
  EXPECT_TRUE(decode_notes(message).empty());
  EXPECT_TRUE(decode_notes({}).empty());
}

TEST(Note, a_file_that_is_wanted_as_a_whole_may_come_with_the_room_for_it) {
  Note note;
  note.kind = NoteKind::kWanted;
  EXPECT_EQ(room_in(note), std::nullopt);
  put_room(note, 0x0123'4567'89ab'cdef);
  const auto read = decode_note(encode(note));
  ASSERT_TRUE(read);
  EXPECT_EQ(room_in(*read), 0x0123'4567'89ab'cdefU);
  note.have = 1;  // then it is a digest
  EXPECT_EQ(room_in(note), std::nullopt);
}

TEST(Note, every_reason_names_the_cause_and_the_remedy) {
  for (unsigned reason = 1; reason <= static_cast<unsigned>(Reason::kKeeps); ++reason) {
    Note note;
    note.reason = static_cast<Reason>(reason);
    EXPECT_NE(describe(note).find("; "), std::string::npos) << describe(note);
  }
  EXPECT_NE(describe(sample()).find("Input/output error"), std::string::npos);
}

TEST(Note, tells_a_file_that_may_not_be_so_long_from_a_directory_without_space) {
  EXPECT_EQ(describe(result_of(-ENOSPC)),
            "not enough space in the receiver's directory; free some");
  EXPECT_EQ(describe(result_of(-EFBIG)),
            "the receiver cannot write the file: File too large; its file system, or its limit "
            "(ulimit -f), permits no file of that length");
}

TEST(Note, names_what_is_in_the_way_of_a_file_and_how_it_goes) {
  const auto says = [](int error, const std::string& part, std::uint64_t have = 0) {
    auto note = result_of(error);
    note.have = have;
    return describe(note).find(part) != std::string::npos;
  };
  EXPECT_TRUE(says(-EISDIR, "with -r --delete to an stp-recv --allow-delete"));
  EXPECT_TRUE(says(-EPIPE, "the program that was to read its output has ended"));
  EXPECT_TRUE(says(-EPERM, "it belongs to another user there"));
  EXPECT_TRUE(says(-ENOTDIR, "cannot write into it: Not a directory", 1));
  EXPECT_EQ(beginning("a/bc/d", 1), "a");
  EXPECT_EQ(beginning("a/bc/d", 2), "a/bc");
  for (const std::uint64_t names : {std::uint64_t{3}, std::uint64_t{4}, ~std::uint64_t{0}})
    EXPECT_EQ(beginning("a/bc/d", names), "a/bc/d");
}

// Appends a file of `length` bytes that all have the value `fill`.
void append(std::vector<std::byte>& pack, std::uint32_t file, std::size_t length, std::byte fill) {
  Digest digest{};
  digest.fill(std::to_integer<std::uint8_t>(fill));
  const auto at = pack.size();
  pack.resize(at + kPackHead + length, fill);
  put_pack_head(std::span(pack).subspan(at, kPackHead), file, length, digest);
}

TEST(Pack, FilesComeOutAsTheyWentIn) {
  std::vector<std::byte> pack;
  append(pack, 7, 3, std::byte{0x11});
  append(pack, 0xfffffffe, 0, std::byte{0x22});
  append(pack, 9, kMostPacked, std::byte{0x33});
  std::span<const std::byte> rest(pack);
  for (const auto& [number, length, fill] : {std::tuple{7U, std::size_t{3}, 0x11},
                                             {0xfffffffeU, std::size_t{0}, 0x22},
                                             {9U, kMostPacked, 0x33}}) {
    const auto file = take_packed(rest);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->file, number);
    EXPECT_EQ(file->content.size(), length);
    EXPECT_EQ(std::count(file->content.begin(), file->content.end(), std::byte(fill)),
              static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(std::count(file->digest.begin(), file->digest.end(), fill),
              static_cast<std::ptrdiff_t>(file->digest.size()));
  }
  EXPECT_TRUE(rest.empty());
}

// Other implementations write them as well.
TEST(Pack, AHeadIsBigEndian) {
  std::vector<std::byte> pack;
  append(pack, 0x01020304, 5, std::byte{0xff});
  const std::array head{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                        std::byte{0}, std::byte{0}, std::byte{0}, std::byte{5}};
  EXPECT_TRUE(std::equal(head.begin(), head.end(), pack.begin()));
}

TEST(Pack, WhatIsCutIsRefused) {
  std::vector<std::byte> pack;
  append(pack, 1, 10, std::byte{1});
  for (std::size_t size = 0; size < pack.size(); ++size) {
    auto cut = std::span<const std::byte>(pack).first(size);
    EXPECT_FALSE(take_packed(cut)) << size;
  }
}

TEST(Pack, ALengthBeyondThePackIsRefused) {
  for (const std::size_t length : {std::size_t{11}, std::size_t{0xffffffff}}) {
    std::vector<std::byte> pack;
    append(pack, 1, 10, std::byte{1});
    put_pack_head(std::span(pack).first(kPackHead), 1, length, {});
    std::span<const std::byte> rest(pack);
    EXPECT_FALSE(take_packed(rest)) << length;
  }
}

}  // namespace
}  // namespace stp::files
