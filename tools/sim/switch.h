// SPDX-License-Identifier: BSD-3-Clause
// A switch: forwards by MAC address; each port has a queue with room for so many bytes, and what
// finds none is dropped.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "tools/sim/wire.h"

namespace stp::sim {

class Switch {
 public:
  Switch(Run& run, std::size_t buffer) : run_(run), buffer_(buffer) {}

  // Plugs a host in: frames for `mac` leave by a wire of the switch's own that ends in `deliver`.
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
