// SPDX-License-Identifier: BSD-3-Clause
// What the receiver must know about a file before its content comes, the rules for its name, and
// --chmod, which changes its permissions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stp::files {

// File names that come from another machine.
inline constexpr std::size_t kMaxNameLength = 255;  // NAME_MAX of every usual file system
inline constexpr std::size_t kMaxPathLength = 4095;
inline constexpr std::string_view kTemporaryPrefix = ".stp-recv.";

// The components of a path below a receiver's directory, where all may be created there: none is
// empty, "." or "..", too long, one of our own temporary files, or has control characters.
std::optional<std::vector<std::string>> accepted_path(std::string_view path);

// The last component of a path; empty where it has none ("/", "..").
std::string base_name(std::string_view path);

// A name for a file under way, unique on this host.
std::string temporary_name();

enum class FileKind : std::uint8_t { kRegular = 1, kDirectory = 2, kSymbolicLink = 3 };

// What the receiver must know about a file, directory or symbolic link before its content comes. A
// message with tag kOffers holds one or more of these, each preceded by its length (2 bytes):
//
//   0  "STPM"   4  version   6  kind   7  flags   8  mode   10  length of the path   12 nanoseconds
//   16  size    24  seconds since 1970 (signed)   32  number of the file that it is a further name
//   of, or 0    36  path, then what a symbolic link points to
//
// A message with tag kChanged holds the number of a file (4 bytes) and one of these, without a
// path.
//
// All fields are big-endian. `size` of a symbolic link is the length of its target; of a directory
// and of a stream it is 0.
//
// A file that is a further name of another (a hard link) becomes one at the receiver when that has
// arrived there over the same connection. Otherwise its content is wanted as that of any file.
struct Metadata {
  FileKind kind = FileKind::kRegular;
  std::uint64_t size = 0;
  std::uint16_t mode = 0;    // permission bits only
  std::timespec modified{};  // without keep_times: not sent
  bool keep_times = false;   // the copy gets `modified`
  bool resume = false;       // go on with what an earlier, broken transfer has left
  bool checksum = false;     // a file of the same size is the same only if its digest says so
  bool stream = false;       // nobody knows its size before it ends
  bool only_make = false;    // a directory: if there is one, it stays as it is
  bool dry = false;          // the receiver says what it would do, and does nothing
  bool more_names = false;   // further names of this file are to come
  std::uint32_t first = 0;   // of a further name of a file: the number of the first; 0: it is none
  std::string path;          // below the receiver's directory, as sent: see accepted_path
  std::string target;        // of a symbolic link
};

inline constexpr std::size_t kMetadataHead = 36;
inline constexpr std::size_t kMaxMetadata = kMetadataHead + 2 * kMaxPathLength;

std::vector<std::byte> encode(const Metadata& metadata);
// nullopt: not metadata of this version, or its length is wrong.
std::optional<Metadata> decode_metadata(std::span<const std::byte> bytes);

// Its length in a message of offers.
inline std::size_t offer_size(const Metadata& metadata) {
  return sizeof(std::uint16_t) + kMetadataHead + metadata.path.size() + metadata.target.size();
}
void append_offer(std::vector<std::byte>& offers, const Metadata& metadata);
// A message of tag kChanged.
struct Changed {
  std::uint32_t file = 0;
  Metadata metadata;  // of a regular file, without its path
};
std::vector<std::byte> encode_changed(std::uint32_t file, Metadata metadata);
// nullopt: it is malformed.
std::optional<Changed> decode_changed(std::span<const std::byte> bytes);

// Removes the first one from `offers`. nullopt: it is malformed.
std::optional<Metadata> take_offer(std::span<const std::byte>& offers);

// --chmod: other permissions than those of the file, as chmod(1) and rsync(1) write them.
class ModeChanges {
 public:
  // "D755,F644" or "u=rwX,go-w": changes, separated by commas, each for directories (D), files (F)
  // or both. nullopt: it is none.
  static std::optional<ModeChanges> parse(std::string_view text);
  // The permission bits of a file that had `mode`.
  [[nodiscard]] std::uint16_t apply(std::uint16_t mode, bool is_directory) const;

 private:
  struct Change {
    bool directories = true, files = true;
    char operation = '=';         // or '+', '-'
    std::uint16_t who = 0777;     // the bits that it may change
    std::uint16_t bits = 0;       // for everybody
    bool execute_if_any = false;  // X: x, for directories and where somebody may execute already
  };
  static std::optional<Change> parse_change(std::string_view text);

  std::vector<Change> changes_;
};

}  // namespace stp::files
