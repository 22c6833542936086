// SPDX-License-Identifier: BSD-3-Clause
// Follows every connection of a trace and checks each frame against what its sender must have
// known. Effects of loss, duplication and reordering, and of frames before the capture began, are
// not reported as faults.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/replay/capture.h"
#include "tools/replay/check/rules.h"

namespace stp::replay {

struct Finding {
  std::uint64_t frame = 0;
  std::int64_t time = 0, epoch = 0;  // as of the CapturedFrame
  Rule rule = Rule::kCaptureLoss;
  std::string expected, seen;

  [[nodiscard]] bool is_note() const { return text_of(rule).certainty == Certainty::kNote; }
};

// "12: 5.18 wrong-key: expected D_Key 0x1, seen 0x2"
std::string line_of(const Finding& finding);
std::string json_of(const Finding& finding);

struct CheckerOptions {
  // The capture is known to lack frames. Faults that a missing frame could explain become notes.
  bool lossy = false;
  // The capture holds every connection from its beginning: all other Ports belong to connectionless
  // endpoints.
  bool endpoints = false;
  // The capture was made at this station. Frames of other stations may have been lost, duplicated,
  // delayed or reordered before they were captured.
  std::optional<MacAddr> at = {};
};

class Checker {
 public:
  using Sink = std::function<void(const Finding&)>;
  explicit Checker(Sink sink, const CheckerOptions& options = {});
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  void frame(const Decoded& frame);
  // The capturing program dropped frames, as the capture says at this frame: as
  // CheckerOptions::lossy from here on.
  void lose(const Decoded& frame, std::uint64_t dropped);
  void finish();  // reports what is known only at the end of the trace

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp::replay
