// SPDX-License-Identifier: BSD-3-Clause
// What stp-send and stp-recv say to each other, as messages of the managed API. Per file:
//
//   sender    Metadata            what comes; files of a connection are numbered from 1 on by it
//   receiver  Note kAnswer        `have` bytes are there already, `digest` is theirs
//   sender    Note kGo            from byte `have` on the content comes
//   sender    content             in messages of at most kChunk bytes
//   sender    Note kCommit        `digest` is what all of the file must come to
//   receiver  Note kAnswer        how it went
//
// Directories and symbolic links have no content: the first answer says how it went. A receiver
// that fails before the end answers at once, and passes over what still comes for that file. A
// sender that gives up says kAbandon, which nobody answers.
//
//   0  "STPF"   4  version   6  kind   8  reason   10  errno   12  file   16  have   24  digest
//
// big-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace stp::files {

inline constexpr std::size_t kChunk = std::size_t{1} << 20;
enum class MessageTag : std::uint32_t { kMetadata = 1, kNote = 2, kContent = 3 };
enum class NoteKind : std::uint16_t { kAnswer = 1, kGo = 2, kCommit = 3, kAbandon = 4 };

enum class Reason : std::uint16_t {
  kNone = 0,      // all is well: the file stands under its name
  kProtocol = 1,  // unknown version, or messages out of order
  kName = 2,      // no file of that name may be written
  kNoSpace = 3,
  kWrite = 4,      // see errno
  kDigest = 5,     // what arrived is not what was sent
  kStopped = 6,    // the receiver was told to end
  kTimeout = 7,    // the content stopped coming
  kAbandoned = 8,  // the sender gave up
};

using Digest = std::array<std::uint8_t, 16>;
inline constexpr std::size_t kNoteSize = 40;
using NoteBytes = std::array<std::byte, kNoteSize>;

struct Note {
  NoteKind kind = NoteKind::kAnswer;
  Reason reason = Reason::kNone;
  std::uint16_t error = 0;  // errno at the receiver, where there is one
  std::uint32_t file = 0;   // its number
  std::uint64_t have = 0;
  Digest digest{};
};

NoteBytes encode(const Note& note);
// nullopt: not one of ours, or of a version that this program does not know.
std::optional<Note> decode_note(std::span<const std::byte> bytes);
// For the user: the cause and the remedy.
std::string describe(const Note& note);

}  // namespace stp::files
