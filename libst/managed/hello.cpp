// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/hello.h"

#include <algorithm>

#include "libst/include/stp/managed.h"
#include "stp/wire/big_endian.h"

namespace stp::managed {
namespace {

// protocol: 9.30
constexpr std::uint32_t kMagic = 0x53544d48;  // "STMH"
constexpr std::uint16_t kVersion = 1;
static_assert(kHelloHead + STM_PRIVATE_DATA <= kHelloSize);

}  // namespace

std::size_t encode(const Hello& hello, std::byte* out) {
  const auto length = static_cast<std::uint32_t>(hello.private_data.size());
  wire::store32(out, kMagic);
  wire::store32(out + 4, std::uint32_t{kVersion} << 16 | static_cast<std::uint16_t>(hello.kind));
  wire::store32(out + 8, length);
  std::ranges::copy(hello.private_data, out + kHelloHead);
  return kHelloHead + length;
}

bool decode(Bytes bytes, Hello& out) {
  if (bytes.size() < kHelloHead || wire::load32(bytes.data()) != kMagic) return false;
  const auto word = wire::load32(bytes.data() + 4);
  const auto length = wire::load32(bytes.data() + 8);
  const auto kind = word & 0xffff;
  if (word >> 16 != kVersion || kind == 0 || kind > 3 || length > STM_PRIVATE_DATA ||
      length != bytes.size() - kHelloHead)
    return false;
  out.kind = static_cast<Hello::Kind>(kind);
  out.private_data.assign(bytes.begin() + kHelloHead, bytes.end());
  return true;
}

}  // namespace stp::managed
