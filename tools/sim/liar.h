// SPDX-License-Identifier: BSD-3-Clause
// A host that violates the protocol: changes fields of the frames that its Node sends, and sends
// old frames again.
#pragma once

#include <vector>

#include "tools/sim/wire.h"

namespace stp::sim {

class Liar {
 public:
  Liar(Rate lies, Dice dice) : lies_(lies), dice_(dice) {}

  // Whether it changed the frame.
  bool mutate(Frame& frame);
  // Remembers values of other hosts' frames, which make more plausible lies.
  void overhear(const Frame& frame);
  // Returns an old frame to send again, or an empty one.
  Frame replay();

 private:
  static constexpr std::size_t kKept = 32;
  void change_field(Frame& frame);
  void change_length(Frame& frame);
  static void repair_checksum(Frame& frame);
  [[nodiscard]] std::uint32_t invent(std::uint32_t truth);
  void keep(const Frame& frame);

  Rate lies_;
  Dice dice_;
  std::vector<Frame> kept_;
  std::vector<std::uint32_t> words_;
  std::size_t next_kept_ = 0, next_word_ = 0;
};

}  // namespace stp::sim
