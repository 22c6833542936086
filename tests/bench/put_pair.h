// SPDX-License-Identifier: BSD-3-Clause
// Two Nodes joined by nothing but function calls, and a region of B's that A puts into.
#pragma once

#include "tests/stp/node/two_nodes.h"

namespace stp::bench {

class PutPair : public test::TwoNodes {
 public:
  PutPair();
  // One Put Block of `length` bytes, from A's memory to B's.
  void put(std::uint32_t length);
  // A burst of them, each from and to the next of 16 places; up to 8 KiB long, or 64. How many.
  std::uint32_t put_burst(std::uint32_t length);
  // The first half of it: nobody receives what A sends.
  void send(std::uint32_t length);
  // Whether the last one brought the right bytes.
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
  std::uint32_t next_buffer_ = 0;
  std::vector<std::byte> heads_;
  std::array<TxFrame, kBurst> frames_{};
};

}  // namespace stp::bench
