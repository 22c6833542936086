// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/pack.h"

#include <cstring>

#include "tools/files/big_endian.h"

namespace stp::files {
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
