// SPDX-License-Identifier: BSD-3-Clause
// Frames to our own address never reach the link: they wait here until the next turn, when the
// Node receives them. Attached memory is not copied on the way.
#pragma once

#include <array>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_buffers.h"

namespace stp::port {

inline constexpr std::size_t kBurst = 32;      // frames per call of a driver or a Node
inline constexpr std::size_t kTurnBursts = 4;  // bursts of one turn, each way: nobody starves

class Loopback {
 public:
  // A turn empties it first and fills it at most this far: it cannot overflow.
  static constexpr std::size_t kCapacity = kBurst * kTurnBursts;

  explicit Loopback(std::size_t room) : heads_(kCapacity, room) {}

  // Keeps the frame, whose head is copied, and its token. There is room for it.
  void push(const TxFrame& frame);

  // Hands all that waits to the engine, and the tokens back; returns how many frames that were.
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
