// SPDX-License-Identifier: BSD-3-Clause
// A switch: forwards by MAC address. Each port has a queue of limited size and drops the frames
// that do not fit.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "tools/sim/wire.h"

namespace stp::sim {

class Switch {
 public:
  Switch(Run& run, std::size_t buffer) : run_(run), buffer_(buffer) {}

  // Connects a host: frames for `mac` leave on a new wire that ends in `deliver`.
  Wire& add_port(const MacAddr& mac, const LinkConfig& link, const Faults& faults,
                 Wire::Deliver deliver);
  void forward(Frame frame);

 private:
  struct Port {
    std::unique_ptr<Wire> wire;
    std::deque<Frame> queue;
    std::size_t bytes = 0;
  };
  void drain(Port& port);

  Run& run_;
  std::size_t buffer_;
  std::map<MacAddr, Port> ports_;
};

}  // namespace stp::sim
