// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/switch.h"

#include <cstring>

#include "stp/wire/layout.h"

namespace stp::sim {

Wire& Switch::add_port(const MacAddr& mac, const LinkConfig& link, const Faults& faults,
                       Wire::Deliver deliver) {
  auto& port = ports_[mac];
  port.wire = std::make_unique<Wire>(run_, link, faults, std::move(deliver));
  return *port.wire;
}

void Switch::forward(Frame frame) {
  MacAddr destination;
  if (frame.size() < wire::kEthernetSize) return;
  std::memcpy(destination.octets.data(), frame.data(), destination.octets.size());
  const auto found = ports_.find(destination);
  if (found == ports_.end()) return;
  auto& port = found->second;
  if (port.bytes + frame.size() > buffer_)
    return run_.trace.fault(run_.now(), Fault::kOverflow, frame);
  port.bytes += frame.size();
  port.queue.push_back(std::move(frame));
  drain(port);
}

void Switch::drain(Port& port) {
  if (port.wire->busy() || port.queue.empty()) return;
  const auto take = [&port] {
    auto frame = std::move(port.queue.front());
    port.queue.pop_front();
    port.bytes -= frame.size();
    return frame;
  };
  port.wire->send(port.queue.front().size(), take, [this, &port] { drain(port); });
}

}  // namespace stp::sim
