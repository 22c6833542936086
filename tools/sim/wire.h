// SPDX-License-Identifier: BSD-3-Clause
// One direction of a cable: it carries one frame at a time at its bit rate, and delivers it after
// its latency, unless chance has something else in mind.
#pragma once

#include <functional>
#include <vector>

#include "tools/sim/run.h"

namespace stp::sim {

using Frame = std::vector<std::byte>;

struct LinkConfig {
  std::uint64_t bits_per_second = 10'000'000'000;
  Time latency = kMicrosecond;
};

// What goes wrong, and how often.
struct Faults {
  Rate loss = 0;
  Rate burst = 0;  // frames that begin a burst of loss
  Time burst_length = 0;
  Rate duplicate = 0;
  Rate reorder = 0;  // frames that fall behind others
  Time reorder_by = 0;
  Rate delay = 0;  // frames that hold up those behind them as well
  Time delay_by = 0;
  Rate corrupt = 0;

  // Whether a frame may come after one that was sent later.
  [[nodiscard]] bool keeps_order() const { return reorder == 0 && duplicate == 0; }
};

class Wire {
 public:
  using Deliver = std::function<void(Frame)>;
  Wire(Run& run, const LinkConfig& link, const Faults& faults, Deliver deliver)
      : run_(run),
        dice_(run.dice.fork()),
        link_(link),
        faults_(faults),
        deliver_(std::move(deliver)) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] bool busy() const { return busy_; }
  // Carries a frame of `size` bytes; only while not busy. `content` is asked for at the end, when
  // the wire has read all of it; an empty frame never was one. Then `idle` is called.
  void send(std::size_t size, std::function<Frame()> content, std::function<void()> idle);
  void cut(bool is_cut) { cut_ = is_cut; }

  // Time that `size` bytes of frame need, with preamble, FCS and gap.
  [[nodiscard]] Time duration(std::size_t size) const;

 private:
  void launch(Frame frame);
  void fly(Frame frame, Time arrival);
  [[nodiscard]] bool lost(const Frame& frame);

  Run& run_;
  Dice dice_;
  LinkConfig link_;
  Faults faults_;
  Deliver deliver_;
  bool busy_ = false, cut_ = false;
  Time burst_until_ = 0, last_arrival_ = 0;
};

}  // namespace stp::sim
