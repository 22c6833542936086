// SPDX-License-Identifier: BSD-3-Clause
// An array of buffers with room for one frame each, in ordinary memory. Pages are touched on first
// use. It shares no cache line with other memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "stp/types.h"
#include "stp/wire/layout.h"

namespace stp::port {

// What different threads write stands this far apart, so that they do not wait for each other.
inline constexpr std::size_t kCacheLine = 64;

constexpr std::size_t whole_cache_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) & ~(kCacheLine - 1);
}

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
      : room_(room),
        memory_(static_cast<std::byte*>(
            ::operator new (whole_cache_lines(count* room), std::align_val_t{kCacheLine}))) {}

  [[nodiscard]] std::size_t room() const { return room_; }
  [[nodiscard]] std::byte* at(std::size_t index) const { return memory_.get() + index * room_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kCacheLine});
    }
  };
  std::size_t room_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace stp::port
