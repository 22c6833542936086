// SPDX-License-Identifier: BSD-3-Clause
// A host that does not keep to the protocol: fields of its frames are changed after all that made
// them, and frames of earlier times come again.
#pragma once

#include <vector>

#include "tools/sim/wire.h"

namespace stp::sim {

class Liar {
 public:
  Liar(Rate lies, Dice dice) : lies_(lies), dice_(dice) {}

  // Whether it changed the frame.
  bool mutate(Frame& frame);
  // Values that others use make better lies.
  void overhear(const Frame& frame);
  // A frame to send again; empty: not now.
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
