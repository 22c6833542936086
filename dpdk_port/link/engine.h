// SPDX-License-Identifier: BSD-3-Clause
// What a link and a Node have of each other: frames in memory, also those to the own address, the
// time, and random numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include "stp/base/assert.h"
#include "stp/node/node.h"
#include "stp/types.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {

// What links need of a frame in memory: room for it, its destination, its VLAN, whether it is ARP.

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

// The part of a Node that a link uses; tests substitute a script. One virtual call per burst has no
// measurable cost.
class Engine {
 public:
  virtual void receive(std::span<const Bytes> burst, Time now) = 0;
  virtual void receive_looped(std::span<const LoopedFrame> burst, Time now) = 0;
  virtual void receive_apart(std::span<const LoopedFrame> burst, Time now) = 0;
  virtual std::size_t transmit(std::span<TxFrame> frames, Time now) = 0;
  virtual void transmitted(std::span<const TxToken> tokens) = 0;
  [[nodiscard]] virtual Time next_deadline() const = 0;
  virtual void expire(Time now) = 0;

 protected:
  ~Engine() = default;
};

class NodeEngine final : public Engine {
 public:
  explicit NodeEngine(Node& node) : node_(node) {}
  void receive(std::span<const Bytes> burst, Time now) override { node_.receive(burst, now); }
  void receive_looped(std::span<const LoopedFrame> burst, Time now) override {
    node_.receive_looped(burst, now);
  }
  void receive_apart(std::span<const LoopedFrame> burst, Time now) override {
    node_.receive_apart(burst, now);
  }
  std::size_t transmit(std::span<TxFrame> frames, Time now) override {
    return node_.transmit(frames, now);
  }
  void transmitted(std::span<const TxToken> tokens) override {
    // Mostly those of one connection's memory.
    for (std::size_t i = 0, end = 0; i < tokens.size(); i = end) {
      for (end = i + 1; end < tokens.size() && tokens[end] == tokens[i];) ++end;
      node_.transmitted(tokens[i], static_cast<std::uint32_t>(end - i));
    }
  }
  [[nodiscard]] Time next_deadline() const override { return node_.next_deadline(); }
  void expire(Time now) override { node_.expire(now); }

 private:
  Node& node_;
};

inline constexpr std::size_t kBurst = 32;      // frames per call of a driver or a Node
inline constexpr std::size_t kTurnBursts = 4;  // bursts per turn and direction, for fairness

// Frames to our own address never reach the link. They wait here until the Node receives them in
// the next turn. Attached memory is not copied on the way.
class Loopback {
 public:
  // Each turn first empties it and then adds at most this many frames, so it cannot overflow.
  static constexpr std::size_t kCapacity = kBurst * kTurnBursts;

  explicit Loopback(std::size_t room) : heads_(kCapacity, room) {}

  // Where the head of the frame pushed after `ahead` others may be built: push() copies none that
  // is where it belongs. Requires room for them.
  [[nodiscard]] std::byte* place(std::size_t ahead) const {
    STP_ASSERT(count_ + ahead < kCapacity, "heads are built where there is room for them");
    return heads_.at(count_ + ahead);
  }
  // Keeps the frame and its token; copies the head. Requires room.
  void push(const TxFrame& frame) {
    STP_ASSERT(count_ < kCapacity, "a turn fills the loopback no further than it can hold");
    STP_ASSERT(frame.head_length <= heads_.room(), "a head is no longer than a frame may be");
    std::byte* const head = heads_.at(count_);
    if (frame.head != head) std::memcpy(head, frame.head, frame.head_length);
    // One field after the other: to copy what has just been written is slow.
    frames_[count_].head = {head, frame.head_length};
    frames_[count_].attached = frame.attached;
    tokens_[count_] = frame.token;
    ++count_;
    ++total_;
  }

  // Passes all waiting frames to the engine and returns their tokens. Returns the number of frames.
  unsigned deliver(Engine& engine, Time now) { return count_ == 0 ? 0 : deliver_some(engine, now); }

  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  unsigned deliver_some(Engine& engine, Time now);

  FrameBuffers heads_;
  std::array<LoopedFrame, kCapacity> frames_;
  std::array<TxToken, kCapacity> tokens_;
  std::size_t count_ = 0;
  std::uint64_t total_ = 0;
};

// The clock for Nodes.

// Nanoseconds of the system's monotonic clock.
Time now();

// The random source for Nodes: they make Keys from it.

// The kernel's random source. Thread-safe.
Random& system_random();

}  // namespace stp::port
