// SPDX-License-Identifier: BSD-3-Clause
// The optional checksum: RFC 1071 over the header with Cksum = 0 and everything after it (section
// 4).
#pragma once

#include "stp/types.h"

namespace stp::wire {

// Sums runs of bytes as one sequence; each may have an odd length.
// protocol: 4.1
class Checksum {
 public:
  void add(Bytes bytes);
  // The value for the wire: complemented, and 0 replaced by 0xffff since 0 means "not used".
  [[nodiscard]] std::uint16_t wire_value() const;
  // Whether the added bytes, which include their Cksum, are intact.
  [[nodiscard]] bool verified() const;

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

}  // namespace stp::wire
