// SPDX-License-Identifier: BSD-3-Clause
// The optional checksum: RFC 1071 over the header with Cksum = 0 and what follows it (section 4).
#pragma once

#include "stp/types.h"

namespace stp::wire {

// Sums byte runs as if they stood one after the other, whatever their lengths' parity.
// protocol: 4.1
class Checksum {
 public:
  void add(Bytes bytes);
  // The value for the wire: complemented, and 0 replaced by 0xffff since 0 means "not used".
  [[nodiscard]] std::uint16_t wire_value() const;
  // Whether what was added is as it was sent, where it includes a Cksum in its place.
  [[nodiscard]] bool verified() const;

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

}  // namespace stp::wire
