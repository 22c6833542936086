// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/note.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/files/failure.h"

namespace stp::files {
namespace {
constexpr std::uint32_t kNoteMagic = 0x53545046;  // "STPF"
constexpr std::size_t kNoteDigestAt = 24;
}  // namespace

NoteBytes encode(const Note& note) {
  NoteBytes bytes{};
  put_big_endian(&bytes[0], kNoteMagic);
  put_big_endian(&bytes[4], kFilesVersion);
  put_big_endian(&bytes[6], static_cast<std::uint16_t>(note.kind));
  put_big_endian(&bytes[8], static_cast<std::uint16_t>(note.reason));
  put_big_endian(&bytes[10], note.error);
  put_big_endian(&bytes[12], note.file);
  put_big_endian(&bytes[16], note.have);
  std::memcpy(&bytes[kNoteDigestAt], note.digest.data(), note.digest.size());
  return bytes;
}

std::optional<Note> decode_note(std::span<const std::byte> bytes) {
  if (bytes.size() != kNoteSize) return std::nullopt;
  const auto kind = get_big_endian<std::uint16_t>(&bytes[6]);
  const auto reason = get_big_endian<std::uint16_t>(&bytes[8]);
  if (get_big_endian<std::uint32_t>(&bytes[0]) != kNoteMagic ||
      get_big_endian<std::uint16_t>(&bytes[4]) != kFilesVersion || kind == 0 ||
      kind > static_cast<std::uint16_t>(NoteKind::kRemoved) ||
      reason > static_cast<std::uint16_t>(Reason::kKeeps))
    return std::nullopt;
  Note note;
  note.kind = static_cast<NoteKind>(kind);
  note.reason = static_cast<Reason>(reason);
  note.error = get_big_endian<std::uint16_t>(&bytes[10]);
  note.file = get_big_endian<std::uint32_t>(&bytes[12]);
  note.have = get_big_endian<std::uint64_t>(&bytes[16]);
  std::memcpy(note.digest.data(), &bytes[kNoteDigestAt], note.digest.size());
  return note;
}

std::vector<Note> decode_notes(std::span<const std::byte> bytes) {
  std::vector<Note> notes;
  for (; !bytes.empty(); bytes = bytes.subspan(kNoteSize)) {
    const auto note = decode_note(bytes.first(std::min(bytes.size(), kNoteSize)));
    if (!note) return {};
    notes.push_back(*note);
  }
  return notes;
}

namespace {

constexpr std::array<std::uint8_t, 8> kRoomMark{'f', 'r', 'e', 'e', 'r', 'o', 'o', 'm'};

}  // namespace

void put_room(Note& note, std::uint64_t bytes) {
  put_big_endian(reinterpret_cast<std::byte*>(note.digest.data()), bytes);
  std::ranges::copy(kRoomMark, note.digest.begin() + sizeof bytes);
}

std::optional<std::uint64_t> room_in(const Note& note) {
  const auto mark = std::span(note.digest).last(kRoomMark.size());
  if (note.have != 0 || !std::ranges::equal(mark, kRoomMark)) return std::nullopt;
  return get_big_endian<std::uint64_t>(reinterpret_cast<const std::byte*>(note.digest.data()));
}

namespace {

std::string remedy(int error) {
  if (error == EISDIR)
    return "remove the directory of that name there, or send with -r --delete to an stp-recv "
           "--allow-delete";
  if (error == EPIPE) return "the program that was to read its output has ended";
  if (error == ENOTDIR || error == ELOOP)
    return "a directory is needed there, and something else has its name, perhaps a symbolic link; "
           "remove that";
  if (error == EFBIG)
    return "its file system, or its limit (ulimit -f), permits no file of that length";
  if (error == ENOSPC) return "free some where it writes to";
  return "check its --out directory";
}

}  // namespace

std::string beginning(const std::string& path, std::uint64_t names) {
  std::size_t end = 0;
  for (; names != 0 && end != std::string::npos; --names) end = path.find('/', end + 1);
  return path.substr(0, end);
}

std::string describe(const Note& note) {
  switch (note.reason) {
    case Reason::kNone:
      return "done";
    case Reason::kProtocol:
      return "the two programs do not understand each other; use the same version on both sides";
    case Reason::kName:
      return "the receiver accepts no file of that name; rename it";
    case Reason::kNoSpace:
      return "not enough space in the receiver's directory; free some";
    case Reason::kWrite:
      if (note.error == EBUSY)
        return "another transfer writes this file at the receiver; send it again when that has "
               "ended";
      if (note.error == EPERM)
        return "the receiver may not change it: " + error_text(EPERM) +
               "; it belongs to another user there, or is immutable; run stp-recv as that user, or "
               "remove it";
      if (note.have != 0)
        return "the receiver cannot write into it: " + error_text(note.error) + "; " +
               remedy(note.error);
      return "the receiver cannot write the file: " + error_text(note.error) + "; " +
             remedy(note.error);
    case Reason::kDigest:
      return "what arrived differs from what was sent; send it again, and see whether the file "
             "changed meanwhile";
    case Reason::kStopped:
      return "the receiver was stopped by a signal; send it again when it runs";
    case Reason::kTimeout:
      if (note.error == EUSERS)
        return "the receiver gave this sender's place to another one, which waited; send it again, "
               "or fewer at once from this host";
      return "the data stopped coming; check the link";
    case Reason::kAbandoned:
      return "the sender gave up on it; its own message says why";
    case Reason::kOnlyOne:
      return "the receiver writes to standard output, and takes one file and no directory; name a "
             "directory there with --out";
    case Reason::kKeeps:
      return "the receiver deletes nothing; start stp-recv there with --allow-delete";
  }
  return "unknown reason";
}

std::string describe_here(const Note& note) {
  if (note.reason == Reason::kWrite && note.error == EISDIR)
    return "it is not written: " + error_text(EISDIR) +
           "; remove the directory, or start with --allow-delete and let the sender use --delete";
  if (note.reason == Reason::kStopped)
    return "stopped here, by a signal, before all of it had come; its sender may send it again";
  if (note.reason == Reason::kTimeout && note.error == EUSERS)
    return "its sender has lost its place to another one, which waited; it may send it again";
  if (note.reason == Reason::kTimeout)
    return "stopped coming before it was whole; its sender may send it again";
  return describe(note);
}

namespace {
constexpr std::size_t kLengthAt = 4, kPackDigestAt = 8;
}  // namespace

void put_pack_head(std::span<std::byte> at, std::uint32_t file, std::size_t length,
                   const Digest& digest) {
  put_big_endian(at.data(), file);
  put_big_endian(&at[kLengthAt], static_cast<std::uint32_t>(length));
  std::memcpy(&at[kPackDigestAt], digest.data(), digest.size());
}

std::optional<Packed> take_packed(std::span<const std::byte>& pack) {
  if (pack.size() < kPackHead) return std::nullopt;
  Packed packed;
  packed.file = get_big_endian<std::uint32_t>(pack.data());
  const auto length = std::size_t{get_big_endian<std::uint32_t>(&pack[kLengthAt])};
  std::memcpy(packed.digest.data(), &pack[kPackDigestAt], packed.digest.size());
  pack = pack.subspan(kPackHead);
  if (length > pack.size()) return std::nullopt;
  packed.content = pack.first(length);
  pack = pack.subspan(length);
  return packed;
}

}  // namespace stp::files
