// SPDX-License-Identifier: BSD-3-Clause
// An array of buffers with room for one frame each, in ordinary memory. Pages are touched on first
// use.
#pragma once

#include <cstring>
#include <memory>

#include "stp/types.h"
#include "stp/wire/layout.h"

namespace stp::port {

// Bytes of the longest frame at an MTU. The Node counts SNAP's bytes on top of the MTU.
constexpr std::size_t frame_room(unsigned mtu) {
  return mtu + wire::kEthernetSize + wire::kVlanSize + wire::kSnapSize;
}

// `frame` has at least an Ethernet header.
inline MacAddr destination(Bytes frame) {
  MacAddr mac;
  std::memcpy(mac.octets.data(), frame.data(), mac.octets.size());
  return mac;
}

class FrameBuffers {
 public:
  FrameBuffers(std::size_t count, std::size_t room)
      : room_(room), memory_(std::make_unique_for_overwrite<std::byte[]>(count * room)) {}

  [[nodiscard]] std::size_t room() const { return room_; }
  [[nodiscard]] std::byte* at(std::size_t index) const { return memory_.get() + index * room_; }

 private:
  std::size_t room_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace stp::port
