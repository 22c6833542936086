// SPDX-License-Identifier: BSD-3-Clause
// Two Nodes that are joined by function calls only, and a region of B that A puts into.
#pragma once

#include "tests/stp/node/two_nodes.h"

namespace stp::bench {

class PutPair : public test::TwoNodes {
 public:
  PutPair();
  // One Put Block of `length` bytes, from A's memory to B's.
  void put(std::uint32_t length);
  // Puts a burst of Blocks, each from and to the next buffers. Together they have at most 64 KiB,
  // so that their frames stay in the nearest caches. Returns their number.
  std::uint32_t put_burst(std::uint32_t length);
  // Only sends: no Node receives the frames.
  void send(std::uint32_t length);
  // Whether the last Put brought the right bytes.
  [[nodiscard]] bool arrived(std::size_t length) const {
    return std::memcmp(source_.data(), target_.data(), length) == 0;
  }

 private:
  static constexpr unsigned kBufsize = 13;
  static constexpr std::uint32_t kRegion = 7;
  static constexpr std::size_t kBurst = 32, kBuffers = 16;
  void TestBody() override {}
  void request(std::uint32_t length);
  void move_frames();
  void let_go(std::size_t count);

  test::Buffers source_{kBufsize, kBuffers}, target_{kBufsize, kBuffers};
  std::uint16_t mx_ = 0;
  SendEntry request_{};
  std::uint32_t next_buffer_ = 0, b_num_ = 0;
  std::vector<std::byte> heads_;
  std::array<TxFrame, kBurst> frames_{};
  std::array<LoopedFrame, kBurst> burst_{};
};

}  // namespace stp::bench
