// SPDX-License-Identifier: BSD-3-Clause
// Connections without a Node, for tests of a single mechanism of a Node.
#pragma once

#include <memory>
#include <vector>

#include "stp/channel/rings.h"
#include "stp/node/connection/port_table.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Vcs {
 public:
  Vcs() { endpoint.owner = &owner; }

  Vc& make(std::uint16_t port) {
    auto vc = std::make_unique<Vc>();
    memory_.push_back(std::make_unique<ChannelMemory>(ChannelGeometry{8, 8}));
    vc->endpoint = &endpoint;
    vc->local_port = port;
    vc->cookie = port;
    vc->channel = NodeChannel(memory_.back()->data(), {8, 8});
    return table.add(std::move(vc));
  }
  // The channel of the connection that was made last.
  [[nodiscard]] UserChannel user() const { return UserChannel(memory_.back()->data()); }

 private:
  std::vector<std::unique_ptr<ChannelMemory>> memory_;

 public:
  Owner owner;
  Endpoint endpoint;
  PortTable table;
};

}  // namespace stp::test
