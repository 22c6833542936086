// SPDX-License-Identifier: BSD-3-Clause
// The protocol between endpoints, in messages of the managed API, whose wire format it does not
// change. The tag of a message gives its kind. Numbers are big-endian.
#pragma once

#include <endian.h>

#include <cstdint>
#include <cstring>

namespace stp::fi {

enum class MessageKind : std::uint32_t {
  kPlain = 0,          // the bytes
  kData = 1,           // the bytes, then 8 of immediate data
  kAnnounced = 2,      // 16 bytes: the length of a message, 0. The receiver reads it (stm_read)
  kAnnouncedData = 3,  // 16 bytes: the length of such a message, its immediate data
  kWritten = 4,        // 16 bytes: the length of a complete write, its immediate data
};
inline constexpr std::size_t kAnnouncement = 16;

inline void store64(std::byte* to, std::uint64_t value) {
  const auto big = htobe64(value);
  std::memcpy(to, &big, sizeof big);
}
inline std::uint64_t load64(const std::byte* from) {
  std::uint64_t big = 0;
  std::memcpy(&big, from, sizeof big);
  return be64toh(big);
}

}  // namespace stp::fi
