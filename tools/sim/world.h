// SPDX-License-Identifier: BSD-3-Clause
// The machines, cables and sessions of one scenario, from the first connection to the final check
// that nothing was left behind.
#pragma once

#include "tools/sim/machine.h"
#include "tools/sim/scenario.h"
#include "tools/sim/simulation.h"
#include "tools/sim/stray.h"
#include "tools/sim/switch.h"

namespace stp::sim {

class World {
 public:
  World(Run& run, const Scenario& scenario);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void play();
  // Plays until `end` and stops in the middle of what goes on.
  void play_until(Time end);
  // Requires Scenario::bottleneck.
  [[nodiscard]] Bottleneck& bottleneck() { return *bottleneck_; }
  // Users' bytes placed in memory, by all Nodes.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  // CTS that Nodes sent again, and STUs that arrived again.
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }
  // Frames that Nodes handed to others behind the same address.
  [[nodiscard]] std::uint64_t handed_over() const { return handed_over_; }

 private:
  struct Station {
    std::unique_ptr<Machine> machine;
    std::unique_ptr<Wire> uplink;
    Wire* downlink = nullptr;
  };
  struct Pair {
    std::size_t client, server;  // machines
    unsigned cycles_left;
    std::unique_ptr<Session> session{};
    std::uint64_t number = 0;  // of the session
    // What identifies the new connection at the client. The server recognizes it by that.
    VcInfo names{};
    bool taken = false;  // the server has accepted it
    bool honest = true;
    unsigned client_node = 0, server_node = 0;  // of the session
    Time begun = 0;
    Time parted = kNever;  // when the first end had ended
  };
  void build();
  void forward(std::size_t from, Frame frame);
  void plan_outages();
  void begin(Pair& pair);
  Application& accept(Host& host, End& end, const VcInfo& info);
  [[nodiscard]] Machine& machine(std::size_t number) const { return *stations_[number].machine; }
  [[nodiscard]] unsigned draw_node();
  void abort_later(Pair& pair, Time span);
  void watch();
  void look_after(Pair& pair);
  void finish(Pair& pair);
  void set_outage(const Outage& outage, bool begins);
  [[nodiscard]] bool all_done() const;
  void start_pairs();
  void flood();
  void count(Machine& machine);
  void retire();

  Run& run_;
  const Scenario& scenario_;
  Switch switch_;
  std::optional<Bottleneck> bottleneck_;
  std::vector<Station> stations_;
  std::vector<Pair> pairs_;
  std::vector<std::unique_ptr<Stray>> strays_;
  std::optional<Dice> flood_dice_;
  std::uint64_t sessions_ = 0, delivered_ = 0, overruns_ = 0, repeats_ = 0, handed_over_ = 0;
};

}  // namespace stp::sim
