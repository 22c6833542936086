// SPDX-License-Identifier: BSD-3-Clause
// Two sides on a daemon whose link can lose, reorder and duplicate frames, and keep user memory.
#pragma once

#include <random>

#include "tests/host/test_port.h"
#include "tests/managed/managed_fixture.h"

namespace stp::test {

class RoughPort final : public TestPort {
 public:
  // Per thousand frames.
  struct Trouble {
    unsigned lost = 0, late = 0, doubled = 0;
  };
  explicit RoughPort(Trouble trouble) : trouble_(trouble) {}

  // While set, frames that are longer than control frames are lost.
  std::atomic<bool> loses_long_frames = false;
  std::atomic<unsigned> lost = 0;

  [[nodiscard]] std::string trouble() const override {
    return loses_long_frames
               ? "frames with 987 bytes or more do not leave: " + std::string(200, 'w')
               : "";
  }

 private:
  void disturb(Frames& frames) override {
    constexpr std::size_t kLong = 1'000;
    Frames arrived;
    for (auto& frame : std::exchange(frames, std::move(late_))) {
      if ((loses_long_frames && frame.size() > kLong) || happens(trouble_.lost)) {
        ++lost;
        continue;
      }
      if (happens(trouble_.doubled)) arrived.push_back(frame);
      (happens(trouble_.late) ? late_ : arrived).push_back(std::move(frame));
    }
    frames.insert(frames.begin(), arrived.begin(), arrived.end());
  }
  bool happens(unsigned per_thousand) { return random_() % 1'000 < per_thousand; }

  const Trouble trouble_;
  std::minstd_rand random_{1};
  Frames late_;  // delivered one turn later
};

class RoughLink {
 public:
  explicit RoughLink(RoughPort::Trouble trouble = {})
      : port(new RoughPort(trouble)), daemon_(std::unique_ptr<port::Port>(port)) {}

  RoughPort* const port;

 private:
  Daemon daemon_;
  UseLink link_{daemon_.link()};
};

}  // namespace stp::test
