// SPDX-License-Identifier: BSD-3-Clause
// The first message of each direction of a managed connection: a request, then its answer, each
// with private data (docs/protocol.md, 9.30).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libst/managed/staging.h"
#include "stp/types.h"

namespace stp::managed {

struct Hello {
  enum class Kind : std::uint16_t { kRequest = 1, kAccept = 2, kReject = 3 };
  Kind kind = Kind::kRequest;
  std::vector<std::byte> private_data;
};

inline constexpr std::size_t kHelloHead = 12;

// Writes the message to `out`, which has room for kHelloSize bytes. Returns its length.
std::size_t encode(const Hello& hello, std::byte* out);
// False: not a valid message.
bool decode(Bytes bytes, Hello& out);

}  // namespace stp::managed
