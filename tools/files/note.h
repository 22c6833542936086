// SPDX-License-Identifier: BSD-3-Clause
// What the option payload (32 bytes) of RTS, RA, END and EA says between stp-send and stp-recv:
//
//   0  "STPF"    4  version    6  kind    8  reason    10  0    12  errno    16  digest (16 bytes)
//
// big-endian. RTS: which Transfer this is. END from the sender: the content's digest, or that it
// gives up. RA with Reject, END from the receiver, EA: how it went.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace stp::files {

enum class NoteKind : std::uint16_t {
  kMetadata = 1,  // RTS: name, size and mode of the file that comes next
  kContent = 2,   // RTS: the file
  kCommit = 3,    // END: all was sent, `digest` is what it must come to
  kAbandon = 4,   // END: the rest will not come
  kAnswer = 5,    // RA, END, EA of the receiver
};

enum class Reason : std::uint16_t {
  kNone = 0,      // all is well: the file stands under its name
  kProtocol = 1,  // unknown version, or operations out of order
  kName = 2,      // no file of that name may be written
  kNoSpace = 3,
  kWrite = 4,      // see errno
  kDigest = 5,     // what arrived is not what was sent
  kStopped = 6,    // the receiver was told to end
  kTimeout = 7,    // Blocks stopped coming
  kAbandoned = 8,  // the sender gave up
};

using Digest = std::array<std::uint8_t, 16>;
inline constexpr std::size_t kNoteSize = 32;
using NoteBytes = std::array<std::uint8_t, kNoteSize>;

struct Note {
  NoteKind kind = NoteKind::kAnswer;
  Reason reason = Reason::kNone;
  std::int32_t error = 0;  // errno at the receiver, where there is one
  Digest digest{};
};

NoteBytes encode(const Note& note);
// nullopt: not one of ours, or of a version that this program does not know.
std::optional<Note> decode(const NoteBytes& bytes);
// For the user: the cause and the remedy.
std::string describe(const Note& note);

}  // namespace stp::files
