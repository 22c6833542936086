// SPDX-License-Identifier: BSD-3-Clause
// Passes frames in order from one thread of this process to another: a lock-free ring of buffers
// with one sender and one receiver. Frames are copied in and read in place. Each side writes its
// own cache lines: the sender the frames, and each side its half of the object.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dpdk_port/link/frame_buffers.h"

namespace stp::port {

class FrameRing {
 public:
  // `places`: a power of two. `room`: bytes of the longest frame.
  FrameRing(std::size_t places, std::size_t room);

  // ---- the sender ----
  // Whether there is room for `frames` more. False: the receiver reports when it has made room.
  bool has_room(std::size_t frames);
  // `local`: the frame comes from this host's memory, not from a link. False: no room, or the frame
  // is longer than `room`.
  bool push(Bytes head, Bytes rest, bool local);
  // Makes pushed frames visible to the receiver. True: there were some.
  bool publish();
  // has_room() returned false, and now there is room. Check before sleeping.
  [[nodiscard]] bool may_go_on() const;

  // ---- the receiver ----
  struct Entry {
    Bytes frame;
    bool local;
  };
  // The number of waiting frames.
  [[nodiscard]] std::size_t waiting() const {
    return sent_.load(std::memory_order_seq_cst) - received_.load(std::memory_order_relaxed);
  }
  // A waiting frame; 0 is the oldest. Readable until released.
  [[nodiscard]] Entry at(std::size_t index) const;
  // True: the sender waits for room.
  bool release(std::size_t frames);

 private:
  friend struct FrameRingLayout;  // a test
  // Stands before each frame, in its buffer.
  struct Head {
    std::uint32_t length;
    bool local;
  };
  [[nodiscard]] std::size_t free_places() const {
    return count_ - (pushed_ - received_.load(std::memory_order_seq_cst));
  }
  [[nodiscard]] std::byte* place(std::size_t number) const {
    return buffers_.at(number & (count_ - 1));
  }

  FrameBuffers buffers_;
  const std::size_t count_, room_;
  // The sender's.
  alignas(kCacheLine) std::atomic<std::size_t> sent_{0};  // frames published, ever
  std::size_t pushed_ = 0;                                // published or not
  std::size_t free_ = 0;                                  // at the last check
  bool waits_ = false;                                    // there was no room at that check
  // The receiver's.
  alignas(kCacheLine) std::atomic<std::size_t> received_{0};
  // Of both, where a ring is full: the sender waits.
  alignas(kCacheLine) std::atomic<bool> stalled_{false};
};

}  // namespace stp::port
