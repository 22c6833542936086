// SPDX-License-Identifier: BSD-3-Clause
// A link on which a test decides for each frame whether it passes, waits or is lost.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>

#include "stp/wire/frame.h"
#include "tests/host/test_port.h"

namespace stp::test {

class JudgedPort final : public TestPort {
 public:
  enum class Fate { kPasses, kWaits, kIsLost };
  using Judge = std::function<Fate(wire::Op)>;

  void judge(Judge judge) {
    std::lock_guard const guard(mutex_);
    judge_ = std::move(judge);
  }
  // Delivers the waiting frames in their order, and lets all later frames pass.
  void release() { judge({}); }
  bool waits(wire::Op op) {
    std::lock_guard const guard(mutex_);
    return std::ranges::any_of(waiting_, [&](const auto& frame) { return op_of(frame) == op; });
  }

 private:
  using Frame = std::vector<std::byte>;

  static wire::Op op_of(const Frame& frame) {
    constexpr unsigned kAnyStu = 16;
    wire::Frame parsed;
    wire::parse(frame, kAnyStu, parsed);
    return parsed.header.op();
  }
  void disturb(Frames& frames) override {
    std::lock_guard const guard(mutex_);
    Frames arrived;
    if (!judge_) arrived.swap(waiting_);
    for (auto& frame : frames) {
      const auto fate = judge_ ? judge_(op_of(frame)) : Fate::kPasses;
      if (fate == Fate::kPasses) arrived.push_back(std::move(frame));
      if (fate == Fate::kWaits) waiting_.push_back(std::move(frame));
    }
    frames = std::move(arrived);
  }

  std::mutex mutex_;  // of what follows
  Judge judge_;
  Frames waiting_;
};

}  // namespace stp::test
