// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stp/wire/frames.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "stp/wire/ethernet.h"

namespace stp::wire {
namespace {

Buffer put_together(bool snap, const Header& header, Bytes body) {
  const LinkHeader link{kMacB, kMacA, std::nullopt, snap};
  Buffer frame(link.size() + kHeaderSize + body.size());
  wrap_inline(link.dst, link.src, link.vlan, link.snap, kHeaderSize + body.size(), frame.data());
  encode(header, frame.data() + link.size());
  std::ranges::copy(body, frame.end() - static_cast<std::ptrdiff_t>(body.size()));
  return frame;
}

}  // namespace

Buffer bytes(std::string_view hex) {
  Buffer out;
  for (std::size_t i = 0; i + 1 < hex.size();) {
    if (hex[i] == ' ') {
      ++i;
      continue;
    }
    std::uint8_t value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    out.push_back(std::byte{value});
    i += 2;
  }
  return out;
}

Buffer pattern(std::size_t length) {
  Buffer out(length);
  for (std::size_t i = 0; i < length; ++i) out[i] = static_cast<std::byte>(7 * i + 1);
  return out;
}

Header good_header(Op op, std::uint16_t flags) {
  Header header{.op_flags = op_flags(op, flags), .d_port = 0x0202, .s_port = 0x0101};
  switch (op) {
    case Op::kRequestConnection:
    case Op::kConnectionAnswer:
      header.bufx = kMinBufsize;
      header.sync = kMinMaxStu;
      break;
    case Op::kRequestToSend:
      header.mx = kMinBlocksize;
      break;
    case Op::kClearToSend:
      header.param = kMinBlocksize;
      break;
    case Op::kRequestToReceive:
    case Op::kRequestMemoryRegion:
      header.set_t_len(1);
      break;
    default:
      break;
  }
  return header;
}

Buffer ethernet2(const Header& header, Bytes body) {
  return put_together(false, header, body);
}

Buffer snap(const Header& header, Bytes body) {
  return put_together(true, header, body);
}

Buffer tagged(Buffer untagged, std::uint16_t tag) {
  const std::array<std::byte, kVlanSize> vlan = {
      static_cast<std::byte>(kVlanEtherType >> 8), static_cast<std::byte>(kVlanEtherType & 0xff),
      static_cast<std::byte>(tag >> 8), static_cast<std::byte>(tag & 0xff)};
  untagged.insert(untagged.begin() + 12, vlan.begin(), vlan.end());
  return untagged;
}

DropReason verdict(Bytes frame) {
  Frame out;
  return parse(frame, kMaxStu, out);
}

}  // namespace stp::wire
