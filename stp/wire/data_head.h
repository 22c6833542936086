// SPDX-License-Identifier: BSD-3-Clause
// The head of DATA frames to one peer, made once: of each frame only what differs is filled in. For
// Ethernet II without a tag, and without a Cksum; others are put together by emit.h.
#pragma once

#include <array>
#include <cstring>

#include "stp/wire/emit.h"

namespace stp::wire {

class DataHead {
 public:
  static constexpr std::size_t kSize = kEthernetSize + kHeaderSize;
  // A shorter STU is not sent in Ethernet II (goes_as_snap).
  static constexpr std::size_t kShortestStu = kMinPayload - kHeaderSize;

  // Of no peer.
  DataHead() = default;
  DataHead(const MacAddr& dst, const MacAddr& src, std::uint16_t d_port, std::uint16_t s_port,
           std::uint32_t d_key)
      : known_(true) {
    encode({.op_flags = op_flags(Op::kData), .d_port = d_port, .s_port = s_port, .d_key = d_key},
           wrap_inline(dst, src, {}, false, 0, head_.data()));
  }
  [[nodiscard]] explicit operator bool() const { return known_; }

  // The head of the frame whose STU is number `stu_num` of its Block; the other words are those of
  // `block`, the flags `flags`.
  void write(const Header& block, std::uint16_t flags, std::uint16_t stu_num,
             std::byte* frame) const {
    std::memcpy(frame, head_.data(), kFixed);
    auto* const header = frame + kEthernetSize;
    store16(header + at::kOpFlags, op_flags(Op::kData, flags));
    store16(header + at::kParam, stu_num);
    store16(header + at::kMx, block.mx);
    store32(header + at::kBufx, block.bufx);
    store32(header + at::kOffset, block.offset);
    store32(header + at::kSync, block.sync);
    store32(header + at::kBNum, block.b_num);
    store32(header + at::kDId, block.d_id);
    store32(header + at::kSId, block.s_id);
  }

 private:
  // Up to the Mx: a whole number of words.
  static constexpr std::size_t kFixed = kEthernetSize + at::kMx;

  std::array<std::byte, kSize> head_{};
  bool known_ = false;
};

}  // namespace stp::wire
