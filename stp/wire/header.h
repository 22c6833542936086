// SPDX-License-Identifier: BSD-3-Clause
// The Schedule Header as a value: 40 bytes of host-order fields, in wire order.
#pragma once

#include <cstdint>

#include "stp/types.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::wire {

// protocol: 3.10
struct Header {
  std::uint16_t op_flags = 0;
  std::uint16_t param = 0;
  std::uint16_t d_port = 0;
  std::uint16_t s_port = 0;
  std::uint32_t d_key = 0;
  std::uint16_t cksum = 0;
  std::uint16_t mx = 0;
  std::uint32_t bufx = 0;
  std::uint32_t offset = 0;
  std::uint32_t sync = 0;
  std::uint32_t b_num = 0;
  std::uint32_t d_id = 0;
  std::uint32_t s_id = 0;

  friend bool operator==(const Header&, const Header&) = default;

  // The five op bits; may hold an unknown code until the frame has been checked.
  [[nodiscard]] constexpr Op op() const { return static_cast<Op>(op_flags >> kOpShift); }
  [[nodiscard]] constexpr bool has(std::uint16_t flag) const { return (op_flags & flag) != 0; }
  [[nodiscard]] constexpr Function function() const {
    return static_cast<Function>((op_flags & flag::kFunction) >> kFunctionShift);
  }
  // protocol: 3.2
  [[nodiscard]] constexpr std::uint64_t t_len() const { return std::uint64_t{sync} << 32 | b_num; }
  constexpr void set_t_len(std::uint64_t len) {
    sync = static_cast<std::uint32_t>(len >> 32);
    b_num = static_cast<std::uint32_t>(len);
  }
};
static_assert(sizeof(Header) == kHeaderSize);

constexpr std::uint16_t op_flags(Op op, std::uint16_t flags = 0) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(op) << kOpShift | (flags & kFlagsMask));
}

// Both need exactly kHeaderSize bytes at `wire`. Inline, so that the fields of each frame are
// stored only once.
inline void encode(const Header& header, std::byte* wire) {
  store16(wire + at::kOpFlags, header.op_flags);
  store16(wire + at::kParam, header.param);
  store16(wire + at::kDPort, header.d_port);
  store16(wire + at::kSPort, header.s_port);
  store32(wire + at::kDKey, header.d_key);
  store16(wire + at::kCksum, header.cksum);
  store16(wire + at::kMx, header.mx);
  store32(wire + at::kBufx, header.bufx);
  store32(wire + at::kOffset, header.offset);
  store32(wire + at::kSync, header.sync);
  store32(wire + at::kBNum, header.b_num);
  store32(wire + at::kDId, header.d_id);
  store32(wire + at::kSId, header.s_id);
}
inline Header decode(const std::byte* wire) {
  return {
      .op_flags = load16(wire + at::kOpFlags),
      .param = load16(wire + at::kParam),
      .d_port = load16(wire + at::kDPort),
      .s_port = load16(wire + at::kSPort),
      .d_key = load32(wire + at::kDKey),
      .cksum = load16(wire + at::kCksum),
      .mx = load16(wire + at::kMx),
      .bufx = load32(wire + at::kBufx),
      .offset = load32(wire + at::kOffset),
      .sync = load32(wire + at::kSync),
      .b_num = load32(wire + at::kBNum),
      .d_id = load32(wire + at::kDId),
      .s_id = load32(wire + at::kSId),
  };
}

// "RTS", "GET", ...; nullptr for a code that is no operation.
const char* short_name(Op op);

// Whether an operation takes a Slot at its receiver (profile section 6). For DATA: the delivered
// header of a Block, not each STU.
bool consumes_slot(const Header& header);

}  // namespace stp::wire
