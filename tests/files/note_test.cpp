// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/note.h"

#include <gtest/gtest.h>

#include <cerrno>

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

TEST(Note, every_reason_names_the_cause_and_the_remedy) {
  for (unsigned reason = 1; reason <= static_cast<unsigned>(Reason::kKeeps); ++reason) {
    Note note;
    note.reason = static_cast<Reason>(reason);
    EXPECT_NE(describe(note).find("; "), std::string::npos) << describe(note);
  }
  EXPECT_NE(describe(sample()).find("Input/output error"), std::string::npos);
}

}  // namespace
}  // namespace stp::files
