// SPDX-License-Identifier: BSD-3-Clause
// Follows every connection of a trace and judges each frame by what its sender must have known.
// What may have been lost, doubled or reordered on the way is no fault; nor is what happened before
// the capture began.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/replay/check/rules.h"
#include "tools/replay/decoded.h"

namespace stp::replay {

struct Finding {
  std::uint64_t frame = 0;
  std::int64_t time = 0;
  Rule rule = Rule::kCaptureLoss;
  std::string expected, seen;

  [[nodiscard]] bool is_note() const { return text_of(rule).certainty == Certainty::kNote; }
};

// "12: 5.18 wrong-key: expected D_Key 0x1, seen 0x2"
std::string line_of(const Finding& finding);
std::string json_of(const Finding& finding);

struct CheckerOptions {
  // The capture is known to lack frames; what a missing one could explain is a note.
  bool lossy = false;
  // It holds every connection from its beginning: other Ports are those of endpoints.
  bool endpoints = false;
  // It was made at this station: what the others send may have been lost, doubled, delayed or
  // overtaken before it got there.
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
  void finish();  // what only the end of the trace shows

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp::replay
