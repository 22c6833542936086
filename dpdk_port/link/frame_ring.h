// SPDX-License-Identifier: BSD-3-Clause
// Frames on their way from one thread to another of this process, in their order: a ring of
// buffers, one sender, one receiver, no lock. Bytes are copied in, and read where they stand. Each
// side writes cache lines of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dpdk_port/link/frame_buffers.h"

namespace stp::port {

class FrameRing {
 public:
  // `places`: a power of two. `room`: bytes of the longest frame.
  FrameRing(std::size_t places, std::size_t room);

  // ---- the sender ----
  // So many more frames find room. False: the receiver says when it has made some.
  bool has_room(std::size_t frames);
  // `local`: from this host's own memory, by way of no link. False: there is no room.
  bool push(Bytes head, Bytes rest, bool local);
  // The receiver sees what was pushed. True: there was something.
  bool publish();
  // It was told that there is no room, and there is now. To be asked before it sleeps.
  [[nodiscard]] bool may_go_on() const;

  // ---- the receiver ----
  struct Entry {
    Bytes frame;
    bool local;
  };
  // How many frames wait.
  [[nodiscard]] std::size_t waiting() const {
    return sent_.load(std::memory_order_seq_cst) - received_.load(std::memory_order_relaxed);
  }
  // One of those, from the oldest on; readable until it is released.
  [[nodiscard]] Entry at(std::size_t index) const;
  // True: the sender waits for that.
  bool release(std::size_t frames);

 private:
  struct Place {
    std::uint32_t length;
    bool local;
  };
  static constexpr std::size_t kLine = 64;
  [[nodiscard]] std::size_t free_places() const {
    return places_.size() - (pushed_ - received_.load(std::memory_order_seq_cst));
  }

  FrameBuffers buffers_;
  std::vector<Place> places_;
  alignas(kLine) std::atomic<std::size_t> sent_{0};  // of all that were ever pushed
  std::size_t pushed_ = 0;                           // the sender's own: not all published
  std::size_t free_ = 0;                             // and as of its last look
  bool waits_ = false;                               // there was no room then
  alignas(kLine) std::atomic<std::size_t> received_{0};
  alignas(kLine) std::atomic<bool> stalled_{false};  // the sender waits; written by both, seldom
};

}  // namespace stp::port
