// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/frame.h"

#include <algorithm>
#include <array>

#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/padding.h"

namespace stp::wire {
DropReason parse(Bytes frame, unsigned max_stu, Frame& out, Bytes apart) {
  return parse_inline(frame, max_stu, out, apart);
}

DropReason split_padded(Bytes body, Frame& out) {
  const auto padding = padding_of(out.header);
  const bool right = is_legal(padding, out.header) && !out.snap &&
                     body.size() == padded_length(padding.stu) - kHeaderSize;
  if (!right) return DropReason::kBadControlLength;
  out.option = padding.option ? body.first(kOptionSize) : Bytes{};
  out.stu = {};
  out.append = {};
  out.padded = true;
  return DropReason::kNone;
}

std::size_t head_size(const Header& header, std::size_t stu_length, bool tagged) {
  return kEthernetSize + (tagged ? kVlanSize : 0) +
         (goes_as_snap(header, stu_length) ? kSnapSize : 0) + kHeaderSize;
}

std::size_t emit_head(const Envelope& envelope, const Header& header,
                      std::span<const Bytes> payload, std::byte* head) {
  std::size_t length = 0;
  for (const Bytes piece : payload) length += piece.size();
  std::byte* const at_header =
      emit_unsummed(envelope.dst, envelope.src, envelope.vlan, header, length, head);
  if (envelope.checksum) fill_checksum(at_header, payload);
  return static_cast<std::size_t>(at_header - head) + kHeaderSize;
}

void fill_checksum(std::byte* at_header, std::span<const Bytes> payload) {
  Checksum checksum;
  checksum.add({at_header, kHeaderSize});
  for (const Bytes piece : payload) checksum.add(piece);
  store16(at_header + at::kCksum, checksum.wire_value());
}

std::size_t emit(const Envelope& envelope, const Header& header, Bytes payload, Bytes append,
                 MutableBytes out) {
  const std::array<Bytes, 2> pieces = {payload, append};
  const auto body =
      out.begin() + static_cast<std::ptrdiff_t>(emit_head(envelope, header, pieces, out.data()));
  auto end = std::ranges::copy(payload, body).out;
  end = std::ranges::copy(append, end).out;
  const auto length = static_cast<std::size_t>(end - out.begin());
  const std::size_t padded = std::max(length, kEthernetSize + kMinPayload);
  std::ranges::fill(out.subspan(length, padded - length), std::byte{0});
  return padded;
}

}  // namespace stp::wire
