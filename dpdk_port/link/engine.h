// SPDX-License-Identifier: BSD-3-Clause
// What a link and a Node have of each other: frames, also those to the own address, the time, and
// random numbers.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "dpdk_port/link/frame_buffers.h"
#include "stp/base/assert.h"
#include "stp/node/node.h"
#include "stp/types.h"

namespace stp::port {

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
    for (const TxToken& token : tokens) node_.transmitted(token);
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
    frames_[count_] = {Bytes(head, frame.head_length), frame.attached};
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
