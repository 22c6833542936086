// SPDX-License-Identifier: BSD-3-Clause
// One machine on the network: a Node, or several behind one address as the shards of a link are.
// Between these is what a link uses (dpdk_port/link/crossing.h). The seed decides what its NIC
// knows about them.
#pragma once

#include "tools/sim/host.h"

namespace stp::sim {

class Machine {
 public:
  // `nodes`: at most Shards::kMost.
  Machine(Run& run, const HostConfig& config, unsigned nodes, const Host::Accept& accept);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] Host& host(unsigned node) const { return *hosts_[node]; }
  [[nodiscard]] const std::vector<std::unique_ptr<Host>>& hosts() const { return hosts_; }
  [[nodiscard]] const HostConfig& config() const { return hosts_.front()->config(); }
  [[nodiscard]] bool lies() const { return hosts_.front()->lies(); }
  [[nodiscard]] bool up() const { return hosts_.front()->up(); }

  void plug_in(Wire& wire);
  void receive(const Frame& frame);
  void go_down();
  void boot();
  // As Host::retire, for all of them.
  void retire();

 private:
  // What picks the queue of a received frame.
  enum class Steering : std::uint8_t {
    kByPort,    // rules for the D_Port, or a peer that knows the Nodes
    kBySender,  // a hash of the sender's address: Nodes hand over what is not theirs
    kOneQueue,  // the first Node receives and sends for all
  };
  [[nodiscard]] unsigned queue_of(const Frame& frame) const;
  void wake_others(unsigned node);

  Run& run_;
  Steering steering_ = Steering::kByPort;
  std::shared_ptr<port::Crossing> crossing_;
  std::optional<Uplink> uplink_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace stp::sim
