// SPDX-License-Identifier: BSD-3-Clause
// What links need of a frame in memory: room for it, its destination, its VLAN, whether it is ARP.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "stp/types.h"
#include "stp/wire/big_endian.h"
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

// An array of buffers with room for one frame each, in ordinary memory. Pages are touched on first
// use. It shares no cache line with other memory.
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

// Which received frames belong to a link: those of its VLAN (IEEE 802.1Q).
// protocol: 2.12
inline constexpr std::uint16_t kServiceTagEtherType = 0x88a8;  // IEEE 802.1ad
inline constexpr std::uint16_t kVlanIdMask = 0x0fff;           // the rest is priority

// The VLAN of a frame; 0: none. A tag with the identifier 0 only carries a priority. `removed`: the
// tag control information that the driver has taken out of the frame. nullopt: the frame ends
// within its tag, or has a tag of a provider, which no link has.
inline std::optional<std::uint16_t> vlan_of(Bytes frame, std::optional<std::uint16_t> removed) {
  if (removed) return static_cast<std::uint16_t>(*removed & kVlanIdMask);
  constexpr std::size_t kTypeAt = wire::kEthernetSize - 2;
  if (frame.size() < wire::kEthernetSize) return 0;  // too short for any protocol
  const std::uint16_t type = wire::load16(&frame[kTypeAt]);
  if (type == kServiceTagEtherType) return std::nullopt;
  if (type != wire::kVlanEtherType) return 0;
  if (frame.size() < wire::kEthernetSize + wire::kVlanSize) return std::nullopt;
  return static_cast<std::uint16_t>(wire::load16(&frame[kTypeAt + 2]) & kVlanIdMask);
}

// `own`: the VLAN of the link, if it has one.
inline bool is_of_vlan(Bytes frame, std::optional<std::uint16_t> removed,
                       std::optional<std::uint16_t> own) {
  return vlan_of(frame, removed) == own.value_or(0);
}

inline constexpr std::uint16_t kArpEtherType = 0x0806;

// The ARP packet of a frame, tagged or not; nullopt: not ARP.
inline std::optional<Bytes> arp_packet(Bytes frame) {
  std::size_t type_at = wire::kEthernetSize - 2;
  if (frame.size() < type_at + 2) return std::nullopt;
  if (wire::load16(&frame[type_at]) == wire::kVlanEtherType) type_at += wire::kVlanSize;
  if (frame.size() < type_at + 2) return std::nullopt;
  if (wire::load16(&frame[type_at]) != kArpEtherType) return std::nullopt;
  return frame.subspan(type_at + 2);
}

}  // namespace stp::port
