// SPDX-License-Identifier: BSD-3-Clause
// The messages that stp-send and stp-recv exchange over the managed API, and the digest of content
// that they carry. Up to kMostOffered files are under way at once, so no step waits for a single
// file.
//
//   sender    offers     what could come: see metadata.h. Files are numbered from 1 on by them
//   receiver  kWanted    of each file: `have` bytes are there already, `digest` is theirs
//   sender    changed    before its content: the file is not as it was offered; see metadata.h
//   sender    pack       small files, each whole with its digest: see Packed
//   or        kGo        from byte `have` on the content of a file comes...
//             content    ...in messages of at most kChunk bytes...
//             kHole      ...or `have` zeros in place of some; they enter the digest as a mark...
//             kCommit    ...and `digest` is what all of the file, of `have` bytes, must come to
//   sender    kSettle    nothing else comes before what came is answered
//   receiver  kDone      `have` files in a row, from `file` on, stand under their names
//   or        kFailed    of each file that does not
//
// For existing files, directories, symbolic links and further names of files that have arrived the
// receiver sends kDone without kWanted. It
// answers for many files at once, after it has synced them to disk. Content between kGo and kCommit
// belongs to one file. If a file fails at the receiver meanwhile, the receiver sends kFailed at
// once and skips the rest of its content. A sender that gives up a file sends kAbandon, which has
// no answer. A sender that finds that a file has changed sends `changed`, even after a part of its
// content: that part does not count then, and the content comes from its first byte on.
//
// Of a file, directory or symbolic link that is offered `dry` the receiver says whether it would be
// wanted (kWanted), and the sender answers kAbandon instead of its content.
//
// For kList, kNames and kRemove see remover.h.
//
// A message of tag kNotes holds one or more notes:
//
//   0  "STPF"   4  version   6  kind   8  reason   10  errno   12  file   16  have   24  digest
//
// big-endian.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stp::files {

template <typename T>
void put_big_endian(std::byte* at, T value) {
  for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(std::uint64_t{value} >> 8))
    at[i] = static_cast<std::byte>(value);
}

template <typename T>
T get_big_endian(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = value << 8 | std::to_integer<std::uint8_t>(at[i]);
  return static_cast<T>(value);
}

inline constexpr std::size_t kChunk = std::size_t{1} << 20;
// The version of all these messages, and of the data that the two exchange when they connect.
inline constexpr std::uint16_t kFilesVersion = 5;
// Limits of the unfinished offers of one connection: files, and bytes of Metadata.
inline constexpr std::size_t kMostOffered = 4096;
inline constexpr std::size_t kMostOfferedBytes = std::size_t{1} << 20;
// Bytes of a hole that one note may name; longer ones take several.
inline constexpr std::uint64_t kMostHole = std::uint64_t{1} << 30;
enum class MessageTag : std::uint32_t {
  kOffers = 1,
  kNotes = 2,
  kContent = 3,
  kPack = 4,
  kChanged = 5,
  kList = 6,
  kNames = 7,
  kRemove = 8
};
enum class NoteKind : std::uint16_t {
  kGo = 1,
  kCommit = 2,
  kAbandon = 3,
  kSettle = 4,
  kWanted = 5,
  kDone = 6,
  kFailed = 7,
  kHole = 8,
  kRemoved = 9
};

enum class Reason : std::uint16_t {
  kNone = 0,      // all is well
  kProtocol = 1,  // unknown version, or messages out of order
  kName = 2,      // no file of that name may be written
  kNoSpace = 3,
  kWrite = 4,      // see errno; `have` names of the path, if not 0, lead to what is in its way
  kDigest = 5,     // what arrived is not what was sent
  kStopped = 6,    // the receiver was told to end; in a kAbandon of no file: the sender was
  kTimeout = 7,    // the content stopped coming; with the errno EUSERS, the sender lost its place
  kAbandoned = 8,  // the sender gave up
  kOnlyOne = 9,    // the receiver writes to standard output
  kKeeps = 10,     // the receiver deletes nothing
};

using Digest = std::array<std::uint8_t, 16>;
inline constexpr std::size_t kNoteSize = 40;
using NoteBytes = std::array<std::byte, kNoteSize>;

struct Note {
  NoteKind kind = NoteKind::kDone;
  Reason reason = Reason::kNone;
  std::uint16_t error = 0;  // errno at the receiver, where there is one
  std::uint32_t file = 0;   // its number
  std::uint64_t have = 0;
  Digest digest{};
};

// A kWanted of `have` 0 needs no digest, and may have in its place how many bytes the receiver's
// file system has room for. Who does not know that does not look there.
void put_room(Note& note, std::uint64_t bytes);
// nullopt: it does not say.
std::optional<std::uint64_t> room_in(const Note& note);

NoteBytes encode(const Note& note);
// nullopt: not one of our messages, or of a version that this program does not know.
std::optional<Note> decode_note(std::span<const std::byte> bytes);
// All notes of a message. Empty: one of them is malformed, or there is none.
std::vector<Note> decode_notes(std::span<const std::byte> bytes);
// The first names of a path; all of it, if it has no more.
std::string beginning(const std::string& path, std::uint64_t names);
// The text for the user: the cause and the remedy.
std::string describe(const Note& note);
// The same for the receiver's own user.
std::string describe_here(const Note& note);

// Small files, each whole, in one message of tag kPack:
//
//   0  file   4  length   8  digest   24  content; then the next one
//
// big-endian.
inline constexpr std::size_t kPackHead = 24;
// Files up to this size are sent in packs. They are not resumed but sent again.
inline constexpr std::size_t kMostPacked = std::size_t{64} << 10;

struct Packed {
  std::uint32_t file = 0;
  Digest digest{};
  std::span<const std::byte> content;
};

// Writes the header before the content.
void put_pack_head(std::span<std::byte> at, std::uint32_t file, std::size_t length,
                   const Digest& digest);
// Removes the first file from `pack`. nullopt: its length exceeds the pack.
std::optional<Packed> take_packed(std::span<const std::byte>& pack);

// XXH3-128 of a file's content, as `xxhsum -H2` prints it. It detects damage by memory, disk or a
// program error. It does not protect against an attacker on the wire.
class ContentDigest {
 public:
  ContentDigest() : state_(XXH3_createState()) {
    if (!state_ || XXH3_128bits_reset(state_.get()) != XXH_OK) throw std::bad_alloc();
  }
  void add(std::span<const std::byte> bytes) {
    if (!bytes.empty()) XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  // So many zeros that were not sent. They count by their number, so that nobody has to make them.
  void add_hole(std::uint64_t length) {
    std::array<std::byte, 16> mark{std::byte{'h'}, std::byte{'o'}, std::byte{'l'}, std::byte{'e'}};
    put_big_endian(&mark[8], length);
    add(mark);
  }
  [[nodiscard]] Digest value() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    return std::to_array(canonical.digest);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

// The digest of content that is complete in memory.
inline Digest digest_of(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return std::to_array(canonical.digest);
}

}  // namespace stp::files
