// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/metadata.h"

#include <algorithm>

#include "tools/files/big_endian.h"

namespace stp::files {
namespace {
constexpr std::uint32_t kMagic = 0x5354504d;  // "STPM"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint16_t kPermissions = 0777;  // no setuid, setgid or sticky bit ever travels
}  // namespace

std::vector<std::uint8_t> encode(const Metadata& metadata) {
  std::vector<std::uint8_t> bytes(kMetadataHead + metadata.name.size());
  put_big_endian(&bytes[0], kMagic);
  put_big_endian(&bytes[4], kVersion);
  put_big_endian(&bytes[6], static_cast<std::uint16_t>(metadata.mode & kPermissions));
  put_big_endian(&bytes[8], metadata.size);
  put_big_endian(&bytes[16], static_cast<std::uint16_t>(metadata.name.size()));
  std::copy(metadata.name.begin(), metadata.name.end(), bytes.begin() + kMetadataHead);
  return bytes;
}

std::optional<Metadata> decode_metadata(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kMetadataHead || bytes.size() > kMaxMetadata ||
      get_big_endian<std::uint32_t>(&bytes[0]) != kMagic ||
      get_big_endian<std::uint16_t>(&bytes[4]) != kVersion ||
      get_big_endian<std::uint16_t>(&bytes[16]) != bytes.size() - kMetadataHead)
    return std::nullopt;
  Metadata metadata;
  metadata.mode = get_big_endian<std::uint16_t>(&bytes[6]) & kPermissions;
  metadata.size = get_big_endian<std::uint64_t>(&bytes[8]);
  metadata.name.assign(bytes.begin() + kMetadataHead, bytes.end());
  return metadata;
}

}  // namespace stp::files
