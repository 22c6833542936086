// SPDX-License-Identifier: BSD-3-Clause
// The expected head of a connection's next DATA frame, from the Ethernet header through the Cksum:
// one comparison recognises a common frame. A frame that matches passes all checks of parse()
// except that of the STU's length, and the checks of the connection's names. It is Ethernet II
// without a tag, from this peer to this station, DATA without append and without Cksum, with legal
// flags, these Ports and this Key. Any other frame may be good too and takes the general path.
#pragma once

#include <array>

#include "stp/wire/ethernet.h"
#include "stp/wire/header.h"
#include "stp/wire/syntax.h"

namespace stp::wire {

namespace expected_data {

// The head is compared in pieces, as they are in the frame: the last two overlap and end after the
// Cksum.
inline constexpr std::size_t kWords = 4;
inline constexpr std::array<std::size_t, kWords> kAt = {
    0, 8, 16, kEthernetSize + at::kCksum + 2 - sizeof(std::uint64_t)};

// The compared bits of one byte: all except legal flags and the STU_num.
constexpr std::uint64_t compared(std::size_t place) {
  constexpr unsigned kOp = 0xffffU & ~static_cast<unsigned>(kFlagsMask);
  constexpr unsigned kFixed =
      kOp | kSyntax[static_cast<std::size_t>(Op::kData)].illegal_flags | flag::kAppend;
  constexpr auto kFlagsAt = kEthernetSize + at::kOpFlags, kParamAt = kEthernetSize + at::kParam;
  if (place == kFlagsAt) return kFixed >> 8;
  if (place == kFlagsAt + 1) return kFixed & 0xff;
  return place == kParamAt || place == kParamAt + 1 ? 0 : 0xff;
}
constexpr std::array<std::uint64_t, kWords> masks() {
  std::array<std::uint64_t, kWords> masks{};
  constexpr auto kBytes = sizeof(std::uint64_t);
  for (std::size_t index = 0; index < kWords; ++index) {
    for (std::size_t i = 0; i < kBytes; ++i) {
      const auto byte = std::endian::native == std::endian::big ? kBytes - 1 - i : i;
      masks[index] |= compared(kAt[index] + i) << 8 * byte;
    }
  }
  return masks;
}
inline constexpr auto kMask = masks();

}  // namespace expected_data

class ExpectedData {
 public:
  // Bytes of a frame that matches() reads; the STU follows them.
  static constexpr std::size_t kHead = kEthernetSize + kHeaderSize;

  // Matches nothing: has bits set that are not compared.
  ExpectedData() { words_.fill(~std::uint64_t{0}); }
  ExpectedData(const MacAddr& dst, const MacAddr& src, std::uint16_t d_port, std::uint16_t s_port,
               std::uint32_t d_key)
      : ExpectedData() {
    // parse() drops these on any connection.
    if (s_port == 0 || src.is_group() || src.is_zero()) return;
    std::array<std::byte, kHead> head{};
    auto* const header = wrap_inline(dst, src, {}, false, 0, head.data());
    encode({.op_flags = op_flags(Op::kData), .d_port = d_port, .s_port = s_port, .d_key = d_key},
           header);
    for (std::size_t i = 0; i < kWords; ++i) words_[i] = word(head.data(), i);
  }

  // `frame` has kHead bytes at least.
  [[nodiscard]] bool matches(const std::byte* frame) const {
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < kWords; ++i) differs |= word(frame, i) ^ words_[i];
    return differs == 0;
  }
  // The D_Port of a frame that matches.
  [[nodiscard]] static std::uint16_t d_port(const std::byte* frame) {
    return load16(frame + kEthernetSize + at::kDPort);
  }
  // Whether it may be DATA at all: a fast check that excludes control operations.
  [[nodiscard]] static bool may_match(const std::byte* frame) {
    return load16(frame + kEthernetSize + at::kOpFlags) >> kOpShift ==
           static_cast<unsigned>(Op::kData);
  }

 private:
  static constexpr auto kWords = expected_data::kWords;

  // The compared bits of that piece.
  static std::uint64_t word(const std::byte* frame, std::size_t index) {
    std::uint64_t value;
    std::memcpy(&value, frame + expected_data::kAt[index], sizeof value);
    return value & expected_data::kMask[index];
  }

  std::array<std::uint64_t, kWords> words_;
};

// Whether what follows the head, ExpectedData::kHead bytes, is an STU that is only copied: Ethernet
// II without a tag, DATA without append and without Cksum.
inline bool is_plain_data(const std::byte* head) {
  const auto* const header = head + kEthernetSize;
  const unsigned flags = load16(header + at::kOpFlags);
  return load16(head + kEthernetSize - 2) == kEtherType &&
         flags >> kOpShift == static_cast<unsigned>(Op::kData) && (flags & flag::kAppend) == 0 &&
         load16(header + at::kCksum) == 0;
}

}  // namespace stp::wire
