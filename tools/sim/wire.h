// SPDX-License-Identifier: BSD-3-Clause
// One direction of a cable: carries one frame at a time at its bit rate and delivers it after its
// latency, unless a fault occurs.
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

// The faults of a link and their rates.
struct Faults {
  Rate loss = 0;
  Rate burst = 0;  // frames that begin a burst of loss
  Time burst_length = 0;
  Rate duplicate = 0;
  Rate reorder = 0;  // frames that later ones overtake
  Time reorder_by = 0;
  Rate delay = 0;  // frames that are delayed together with those behind them
  Time delay_by = 0;
  Rate corrupt = 0;

  // False if a frame, or its duplicate, may arrive after one that was sent later.
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
  // Carries a frame of `size` bytes. Call only while not busy. When the wire has read the whole
  // frame, it calls `content` for the bytes (empty: nothing was sent) and then `idle`.
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
