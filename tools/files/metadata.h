// SPDX-License-Identifier: BSD-3-Clause
// What the receiver has to know of a file before its content comes. It travels as a Transfer of
// its own:
//
//   0  "STPM"    4  version    6  mode    8  size (64 bits)    16  length of the name    18  name
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/files/name.h"

namespace stp::files {

struct Metadata {
  std::uint64_t size = 0;
  std::uint16_t mode = 0;  // permission bits only
  std::string name;        // as sent: see accepted_name
};

inline constexpr std::size_t kMetadataHead = 18;
inline constexpr std::size_t kMaxMetadata = kMetadataHead + kMaxNameLength;

std::vector<std::uint8_t> encode(const Metadata& metadata);
// nullopt: not metadata of this version, or of another length than it says.
std::optional<Metadata> decode_metadata(std::span<const std::uint8_t> bytes);

}  // namespace stp::files
