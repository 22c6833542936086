// SPDX-License-Identifier: BSD-3-Clause
// Captures whose frames have no Ethernet header: of a tunnel (WireGuard, tun), or of all interfaces
// at once ("any"). Their packets of IP get one that names no station: those of IP have addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "stp/types.h"
#include "tools/replay/capture.h"

namespace stp::replay {

class IpPackets {
 public:
  // Of files with that link type (DLT_...). nullopt: it has no packets of IP, or not so.
  static std::optional<IpPackets> of(int type);
  // The result is valid until the next call. False: it is STP on Ethernet, whose addresses are not
  // there.
  bool wrap(CapturedFrame& frame);

 private:
  IpPackets(std::size_t head, std::optional<std::size_t> type_at)
      : head_(head), type_at_(type_at) {}
  [[nodiscard]] std::uint16_t type_of(Bytes bytes) const;

  std::size_t head_;                    // what stands before a packet
  std::optional<std::size_t> type_at_;  // where that has the EtherType; nullopt: nowhere
  std::vector<std::byte> wrapped_;
};

}  // namespace stp::replay
