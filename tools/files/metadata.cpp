// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/metadata.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>

#include "tools/files/note.h"

namespace stp::files {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool is_accepted(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxNameLength &&
         !name.starts_with(kTemporaryPrefix) && std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace

std::optional<std::vector<std::string>> accepted_path(std::string_view path) {
  if (path.size() > kMaxPathLength) return std::nullopt;
  std::vector<std::string> names;
  for (;;) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto name = path.substr(0, slash);
    if (!is_accepted(name)) return std::nullopt;
    names.emplace_back(name);
    if (slash == path.size()) return names;
    path.remove_prefix(slash + 1);
  }
}

std::string base_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return path == "." || path == ".." ? std::string() : std::string(path);
}

std::string temporary_name() {
  static std::atomic<unsigned> number{0};
  return std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "." +
         std::to_string(number++) + ".part";
}

namespace {

constexpr std::uint32_t kMagic = 0x5354504d;  // "STPM"
constexpr std::uint16_t kPermissions = 0777;  // setuid, setgid and sticky bits are never sent
constexpr std::uint8_t kKeepTimes = 1, kResume = 2, kChecksum = 4, kStream = 8, kOnlyMake = 16,
                       kDry = 32, kMoreNames = 64;

bool is_kind(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(FileKind::kRegular) &&
         kind <= static_cast<std::uint8_t>(FileKind::kSymbolicLink);
}

void append(std::vector<std::byte>& bytes, const std::string& text) {
  const auto from = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), from.begin(), from.end());
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<std::byte> encode(const Metadata& metadata) {
  std::vector<std::byte> bytes(kMetadataHead);
  const auto flags = (metadata.keep_times ? kKeepTimes : 0) | (metadata.resume ? kResume : 0) |
                     (metadata.checksum ? kChecksum : 0) | (metadata.stream ? kStream : 0) |
                     (metadata.only_make ? kOnlyMake : 0) | (metadata.dry ? kDry : 0) |
                     (metadata.more_names ? kMoreNames : 0);
  put_big_endian(&bytes[0], kMagic);
  put_big_endian(&bytes[4], kFilesVersion);
  bytes[6] = static_cast<std::byte>(metadata.kind);
  bytes[7] = static_cast<std::byte>(flags);
  put_big_endian(&bytes[8], static_cast<std::uint16_t>(metadata.mode & kPermissions));
  put_big_endian(&bytes[10], static_cast<std::uint16_t>(metadata.path.size()));
  put_big_endian(&bytes[12], static_cast<std::uint32_t>(metadata.modified.tv_nsec));
  put_big_endian(&bytes[16], metadata.size);
  put_big_endian(&bytes[24], static_cast<std::uint64_t>(metadata.modified.tv_sec));
  put_big_endian(&bytes[32], metadata.first);
  append(bytes, metadata.path);
  append(bytes, metadata.target);
  return bytes;
}

std::optional<Metadata> decode_metadata(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kNanoseconds = 1'000'000'000;
  if (bytes.size() < kMetadataHead || bytes.size() > kMaxMetadata ||
      get_big_endian<std::uint32_t>(&bytes[0]) != kMagic ||
      get_big_endian<std::uint16_t>(&bytes[4]) != kFilesVersion ||
      !is_kind(std::to_integer<std::uint8_t>(bytes[6])))
    return std::nullopt;
  Metadata metadata;
  metadata.kind = static_cast<FileKind>(bytes[6]);
  const auto flags = std::to_integer<std::uint8_t>(bytes[7]);
  metadata.keep_times = (flags & kKeepTimes) != 0;
  metadata.resume = (flags & kResume) != 0;
  metadata.checksum = (flags & kChecksum) != 0;
  metadata.stream = (flags & kStream) != 0;
  metadata.only_make = (flags & kOnlyMake) != 0;
  metadata.dry = (flags & kDry) != 0;
  metadata.more_names = (flags & kMoreNames) != 0;
  metadata.first = get_big_endian<std::uint32_t>(&bytes[32]);
  metadata.mode = get_big_endian<std::uint16_t>(&bytes[8]) & kPermissions;
  metadata.size = get_big_endian<std::uint64_t>(&bytes[16]);
  metadata.modified.tv_sec = static_cast<std::time_t>(get_big_endian<std::uint64_t>(&bytes[24]));
  const auto nanoseconds = get_big_endian<std::uint32_t>(&bytes[12]);
  const auto path = std::size_t{get_big_endian<std::uint16_t>(&bytes[10])};
  const auto target = metadata.kind == FileKind::kSymbolicLink ? metadata.size : 0;
  const auto texts = bytes.subspan(kMetadataHead);
  const auto has_names = metadata.more_names || metadata.first != 0;
  if (nanoseconds >= kNanoseconds || path > texts.size() || target != texts.size() - path ||
      (has_names && metadata.kind != FileKind::kRegular))
    return std::nullopt;
  metadata.modified.tv_nsec = nanoseconds;
  metadata.path = text_of(texts.first(path));
  metadata.target = text_of(texts.subspan(path));
  return metadata;
}

void append_offer(std::vector<std::byte>& offers, const Metadata& metadata) {
  const auto bytes = encode(metadata);
  offers.resize(offers.size() + sizeof(std::uint16_t));
  put_big_endian(&offers[offers.size() - sizeof(std::uint16_t)],
                 static_cast<std::uint16_t>(bytes.size()));
  offers.insert(offers.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> encode_changed(std::uint32_t file, Metadata metadata) {
  metadata.path.clear();
  auto bytes = encode(metadata);
  bytes.insert(bytes.begin(), sizeof file, std::byte{0});
  put_big_endian(bytes.data(), file);
  return bytes;
}

std::optional<Changed> decode_changed(std::span<const std::byte> bytes) {
  Changed changed;
  if (bytes.size() < sizeof changed.file) return std::nullopt;
  changed.file = get_big_endian<std::uint32_t>(bytes.data());
  auto metadata = decode_metadata(bytes.subspan(sizeof changed.file));
  if (!metadata || metadata->kind != FileKind::kRegular || !metadata->path.empty())
    return std::nullopt;
  changed.metadata = std::move(*metadata);
  return changed;
}

std::optional<Metadata> take_offer(std::span<const std::byte>& offers) {
  if (offers.size() < sizeof(std::uint16_t)) return std::nullopt;
  const auto length = get_big_endian<std::uint16_t>(offers.data());
  offers = offers.subspan(sizeof(std::uint16_t));
  if (length > offers.size()) return std::nullopt;
  const auto bytes = offers.first(length);
  offers = offers.subspan(length);
  return decode_metadata(bytes);
}

namespace {

constexpr std::uint16_t kAllBits = 0777, kExecute = 0111;

std::uint16_t bits_of_who(char who) {
  switch (who) {
    case 'u':
      return 0700;
    case 'g':
      return 0070;
    case 'o':
      return 0007;
    default:
      return who == 'a' ? kAllBits : std::uint16_t{0};
  }
}

std::uint16_t bits_of_permission(char permission) {
  switch (permission) {
    case 'r':
      return 0444;
    case 'w':
      return 0222;
    default:
      return permission == 'x' ? kExecute : std::uint16_t{0};
  }
}

}  // namespace

std::optional<ModeChanges::Change> ModeChanges::parse_change(std::string_view text) {
  Change change;
  if (text.starts_with('D') || text.starts_with('F')) {
    change.directories = text.starts_with('D');
    change.files = !change.directories;
    text.remove_prefix(1);
  }
  unsigned octal = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, octal, 8);
  if (error == std::errc()) {
    if (stop != end || octal > kAllBits) return std::nullopt;
    change.bits = static_cast<std::uint16_t>(octal);
    return change;
  }
  std::uint16_t who = 0;
  for (; !text.empty() && bits_of_who(text.front()) != 0; text.remove_prefix(1))
    who = static_cast<std::uint16_t>(who | bits_of_who(text.front()));
  if (who != 0) change.who = who;
  constexpr std::string_view kOperations = "+-=";
  if (text.empty() || kOperations.find(text.front()) == std::string_view::npos) return std::nullopt;
  change.operation = text.front();
  for (text.remove_prefix(1); !text.empty(); text.remove_prefix(1)) {
    const auto bits = bits_of_permission(text.front());
    if (text.front() == 'X')
      change.execute_if_any = true;
    else if (bits == 0)
      return std::nullopt;
    change.bits = static_cast<std::uint16_t>(change.bits | bits);
  }
  return change;
}

std::optional<ModeChanges> ModeChanges::parse(std::string_view text) {
  ModeChanges changes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto change = parse_change(text.substr(begin, end - begin));
    if (!change) return std::nullopt;
    changes.changes_.push_back(*change);
    begin = end + 1;
  }
  return changes;
}

std::uint16_t ModeChanges::apply(std::uint16_t mode, bool is_directory) const {
  unsigned result = mode & kAllBits;
  for (const auto& change : changes_) {
    if (!(is_directory ? change.directories : change.files)) continue;
    const auto execute = change.execute_if_any && (is_directory || (result & kExecute) != 0);
    const auto bits = (change.bits | (execute ? kExecute : 0U)) & change.who;
    if (change.operation == '+')
      result |= bits;
    else if (change.operation == '-')
      result &= ~bits;
    else
      result = (result & ~unsigned{change.who}) | bits;
  }
  return static_cast<std::uint16_t>(result);
}

}  // namespace stp::files
