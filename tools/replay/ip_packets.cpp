// SPDX-License-Identifier: BSD-3-Clause
#include <pcap/dlt.h>

#include <algorithm>

#include "stp/wire/big_endian.h"
#include "stp/wire/ethernet.h"
#include "stp/wire/layout.h"
#include "tools/replay/capture.h"

namespace stp::replay {
namespace {

constexpr std::uint16_t kIpv4 = 0x0800, kIpv6 = 0x86dd, kOther = 0xffff;

}  // namespace

std::optional<IpPackets> IpPackets::of(int type) {
  switch (type) {
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return IpPackets(0, std::nullopt);
    case DLT_LINUX_SLL:
      return IpPackets(16, 14);
    case DLT_LINUX_SLL2:
      return IpPackets(20, 0);
    default:
      return std::nullopt;
  }
}

std::uint16_t IpPackets::type_of(Bytes bytes) const {
  if (bytes.size() <= head_) return kOther;
  if (type_at_) return wire::load16(bytes.data() + *type_at_);
  switch (std::to_integer<unsigned>(bytes.front()) >> 4) {
    case 4:
      return kIpv4;
    case 6:
      return kIpv6;
    default:
      return kOther;
  }
}

bool IpPackets::wrap(CapturedFrame& frame) {
  const auto type = type_of(frame.bytes);
  if (type == wire::kEtherType) return false;
  const Bytes packet = frame.bytes.subspan(std::min(head_, frame.bytes.size()));
  wrapped_.assign(wire::kEthernetSize, std::byte{0});
  wire::store16(wrapped_.data() + wire::kEthernetSize - sizeof type,
                type == kIpv4 || type == kIpv6 ? type : kOther);
  wrapped_.insert(wrapped_.end(), packet.begin(), packet.end());
  frame.bytes = wrapped_;
  frame.wire_length = std::max(wrapped_.size(), wire::kEthernetSize + frame.wire_length -
                                                    std::min(head_, frame.wire_length));
  return true;
}

}  // namespace stp::replay
