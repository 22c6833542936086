// SPDX-License-Identifier: BSD-3-Clause
// Frames made by an encoder that shares no code with this project, and the expected content of
// each.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "stp/wire/frame.h"

namespace stp::wire {

struct GoldenFrame {
  std::string name;
  Envelope envelope;
  bool snap;
  Header header;                   // with the Cksum of the frame
  std::vector<std::byte> payload;  // option payload or STU
  std::vector<std::byte> append;
  std::vector<std::byte> frame;
};

// How a failed test names its frame.
inline void PrintTo(const GoldenFrame& golden, std::ostream* out) {
  *out << golden.name;
}

const std::vector<GoldenFrame>& golden_frames();

}  // namespace stp::wire
