// SPDX-License-Identifier: BSD-3-Clause
// Frames to our own address never reach the link. They wait here until the Node receives them in
// the next turn. Attached memory is not copied on the way.
#pragma once

#include <array>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_buffers.h"
#include "stp/base/assert.h"

namespace stp::port {

inline constexpr std::size_t kBurst = 32;      // frames per call of a driver or a Node
inline constexpr std::size_t kTurnBursts = 4;  // bursts per turn and direction, for fairness

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
  void push(const TxFrame& frame);

  // Passes all waiting frames to the engine and returns their tokens. Returns the number of frames.
  unsigned deliver(Engine& engine, Time now);

  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  FrameBuffers heads_;
  std::array<LoopedFrame, kCapacity> frames_;
  std::array<TxToken, kCapacity> tokens_;
  std::size_t count_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace stp::port
