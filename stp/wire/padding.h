// SPDX-License-Identifier: BSD-3-Clause
// The padding of RC and CA over IP: they are as long as the datagrams that they promise, so that
// none is answered where those are lost (docs/protocol.md, 13.20).
#pragma once

#include "stp/counters.h"
#include "stp/types.h"
#include "stp/wire/header.h"
#include "stp/wire/layout.h"

namespace stp::wire {

// What w7 of an RC or CA says of its padding.
struct Padding {
  bool known = false;   // the sender pads
  bool option = false;  // an option payload stands before the padding
  bool proves = false;  // RC: the sender will answer the CA (protocol: 13.21)
  bool heeds = false;   // the sender heeds the marks of routers (protocol: 13.22)
  unsigned asked = 0;   // CA: the I_Max_STU of the RC that it answers
  unsigned stu = 0;     // exponent of the STU whose datagram is as long; 0: there is no padding

  [[nodiscard]] constexpr std::uint32_t word() const {
    return (known ? 1U : 0U) | (option ? 2U : 0U) | (proves ? 4U : 0U) | (heeds ? 8U : 0U) |
           asked << 8 | stu << 16;
  }
};

// The bytes from the header on of the longest datagram with an STU of that exponent.
// protocol: 13.5, 13.20
constexpr std::size_t padded_length(unsigned stu) {
  return kHeaderSize + (std::size_t{1} << stu) + kAppendSize;
}

// None but an RC, or a CA without Reject, has padding.
// protocol: 13.20
constexpr Padding padding_of(const Header& header) {
  const bool request = header.op() == Op::kRequestConnection;
  const bool answer = header.op() == Op::kConnectionAnswer && !header.has(flag::kReject);
  const auto word = header.b_num;
  if (!request && !answer) return {};
  return {.known = (word & 1) != 0,
          .option = (word & 2) != 0,
          .proves = request && (word & 4) != 0,
          .heeds = (word & 8) != 0,
          .asked = word >> 8 & 0xff,
          .stu = word >> 16 & 0xff};
}

// Whether an RC or CA may have that padding: an RC is as long as its I_Max_STU says, and a CA no
// longer than that RC or its own R_Max_STU.
// protocol: 13.20
constexpr bool is_legal(const Padding& padding, const Header& header) {
  if (!padding.known || padding.stu < kMinMaxStu || padding.stu > kMaxMaxStu) return false;
  if (header.op() == Op::kRequestConnection) return padding.stu == header.sync;
  return padding.stu <= header.sync && padding.stu <= padding.asked && padding.asked <= kMaxMaxStu;
}

}  // namespace stp::wire
