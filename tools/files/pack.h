// SPDX-License-Identifier: BSD-3-Clause
// Small files, each whole, in one message of tag kPack:
//
//   0  file   4  length   8  digest   24  content; then the next one
//
// big-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tools/files/note.h"

namespace stp::files {

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

}  // namespace stp::files
