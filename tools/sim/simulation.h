// SPDX-License-Identifier: BSD-3-Clause
// One simulated run. A profile, a seed and the number of Nodes behind each address determine
// everything else.
//
// A scenario describes a run: machines, cables, faults, and what the programs do. A profile names a
// family of scenarios; the seed selects one of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stp/types.h"
#include "tools/sim/host.h"
#include "tools/sim/network.h"
#include "tools/sim/session.h"

namespace stp::sim {

// From `at` on, a host's cable is unplugged or the host itself is down.
struct Outage {
  std::size_t host = 0;
  Time at = 0, lasts = 0;
  bool reboot = false;  // the host forgets everything
};

struct Scenario {
  std::vector<HostConfig> hosts;
  unsigned nodes = 1;  // behind the address of each host
  LinkConfig link;
  Faults faults;
  std::size_t switch_buffer = std::size_t{1} << 30;
  std::vector<Outage> outages;
  Time flood_every = 0;                // between RCs with forged addresses; 0: none
  unsigned pairs = 1;                  // of hosts with a session between them
  unsigned cycles = 1;                 // sessions of a pair, one after the other
  Time pause = 2 * kMillisecond;       // at most, before a session begins
  std::function<void()> session_over;  // if set, called when both ends are gone
  bool to_one = false;                 // all sessions go to host 0
  // Session i goes from host 2i + 1 to host 2i: no two sessions share a host.
  bool apart = false;
  // Frames of senders (all hosts but 0; if apart, the odd ones) pass it; those of others take only
  // its delay. The flow of a frame is the number of its sender.
  std::optional<BottleneckConfig> bottleneck;
  Workload workload;
  // The scenario has no fault that may end a connection, so none may end.
  bool reliable = true;
  // Whether honest peers never overrun Slots. A duplicate or late operation takes a Slot like a new
  // one, and the Slots of a connectionless endpoint are not known to its peers.
  [[nodiscard]] bool slots_hold() const {
    return faults.keeps_order() && workload.kind != Workload::Kind::kConnectionless;
  }
};

struct Profile {
  const char* name;
  const char* text;
  void (*draw)(Scenario& scenario, Dice& dice);
  unsigned weight = 1;  // its frequency when all profiles are played; 0: very rare
};

std::span<const Profile> profiles();
const Profile* find_profile(const std::string& name);
Scenario draw_scenario(const Profile& profile, Dice& dice);

// A program for a connection that belongs to no session any more, because its peer has given up or
// its own host has rebooted. Closes it after a while unless it ends by itself.
class Stray : public Application {
 public:
  explicit Stray(Time since) : since_(since) {}
  [[nodiscard]] bool is_gone() const { return gone_; }
  [[nodiscard]] Time since() const { return since_; }

  void opened(End&, const VcInfo&, Time) override {}
  void receive(const ReceivedEntry&, Time) override {}
  void work(Time) override {}
  bool transmit(SendEntry&, Time) override { return false; }
  [[nodiscard]] Time next_deadline() const override {
    return closes_ ? kNever : since_ + kPatience;
  }
  void expire(Time) override { closes_ = true; }
  [[nodiscard]] bool wants_close() const override { return closes_; }
  void ended(int, Time) override {}
  void gone() override { gone_ = true; }
  void lost() override { gone_ = true; }

 private:
  static constexpr Time kPatience = kSecond;
  Time since_;
  bool closes_ = false, gone_ = false;
};

// One machine on the network: a Node, or several behind one address as the shards of a link are.
// Between these is what a link uses (dpdk_port/link/crossing.h). The seed decides what its NIC
// knows about them.
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

// The machines, cables and sessions of one scenario, from the first connection to the final check
// that nothing was left behind.
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

struct Result {
  std::vector<std::string> failures;
  int file_error = 0;      // why Watch::file is not complete: 0 or a negative errno
  std::uint64_t hash = 0;  // of all frames on the wires and their times
  Time simulated = 0;
  std::uint64_t frames = 0, bytes = 0, faults = 0;
  std::uint64_t delivered = 0;  // users' bytes placed in memory
  OpCounts ops{};               // frames of each operation
  // repeats: requests and CTS sent again, and STUs received again. Without faults they are
  // needless. calls: RC and RD sent again; a sender cannot ask whether these arrived. questions:
  // all RS.
  std::uint64_t repeats = 0, calls = 0, questions = 0;
  std::uint64_t handed_over = 0;  // frames from one Node to another behind the same address
};

struct Watch {
  std::FILE* text = nullptr;         // a line per frame and event
  std::unique_ptr<PcapngFile> file;  // every frame, as it is sent
  std::optional<MacAddr> station;    // limits the file to frames that it sends or receives
};

// `nodes`: 1 to Shards::kMost.
Result simulate(const Profile& profile, std::uint64_t seed, Watch watch = {}, unsigned nodes = 1);
// How many hosts that run has: 02:00:00:00:00:01 and the next ones.
std::size_t hosts_of(const Profile& profile, std::uint64_t seed);
// Plays a scenario of the caller.
Result simulate(const Scenario& scenario, Dice dice, Watch watch = {});

// Runs that measure: an incast, long writes over a lossy link, and memory over a long time.

// Incast: many senders, one receiver, and a switch port between them whose buffer is too small for
// all of them.
struct IncastResult {
  bool passed = false;
  std::uint64_t drops = 0;  // frames that found no room in the switch
  double line_rate = 0;     // users' share of the receiver's bit rate: 0..1
  double worst_finish = 0;  // finish of the last sender, as a multiple of the least possible time
};

// 1 MiB each, at 100 Gbit/s and 2 us per hop, 256 KiB of buffer at the port.
// `granted_limit`, `routed` and `granted_most` as in NodeConfig; 0: no pacing.
IncastResult play_incast(unsigned senders, std::uint64_t granted_limit, bool routed = false,
                         std::uint64_t granted_most = 0);

// A limit that suits the link: more than its bandwidth-delay product, less than the port's buffer.
std::uint64_t incast_limit();

// One long write over a link that loses, reorders and duplicates frames, between hosts that are not
// always scheduled. Measures the bytes sent and the goodput.

inline constexpr std::uint64_t kLossyLength = std::uint64_t{32} << 20;

// The faults of the lines of a comparison.
inline constexpr Faults kOnePercent{.loss = kAlways / 100};
inline constexpr Faults kTenTenFive{.loss = kAlways / 10,
                                    .duplicate = kAlways / 20,
                                    .reorder = kAlways / 10,
                                    .reorder_by = 20 * kMicrosecond};

struct LossyResult {
  bool passed = false;
  std::uint64_t bytes = 0;  // sent by both hosts
  double goodput = 0;       // users' bits per second
};

// A host that shares its core: the loop runs for a few milliseconds at a time.
inline constexpr HostConfig::Pauses kBusyCore{.count = 40,
                                              .every = 4 * kMillisecond,
                                              .shortest = 10 * kMillisecond,
                                              .longest = 200 * kMillisecond};

// STUs of 8 KiB, 10 Gbit/s, 2 us per hop.
LossyResult play_lossy(const Faults& faults, std::uint64_t seed,
                       const HostConfig::Pauses& of_receiver = {},
                       const HostConfig::Pauses& of_sender = {});

// A stream of writes of 1 MiB, 16 at a time, over a link that loses frames: what the frames cost
// besides the bytes. STUs of 8 KiB, 20 Gbit/s, 6 us per hop.
struct StreamResult {
  bool passed = false;
  double frames = 0, bytes = 0;  // sent by both hosts for each write
  double goodput = 0;            // users' bits per second
};

StreamResult play_stream(const Faults& faults, std::uint64_t seed);

// A soak test: makes, uses and closes connections over a faulty link for a long simulated time, and
// measures whether memory grows.
struct SoakResult {
  std::vector<std::string> failures;
  Time simulated = 0;
  std::uint64_t sessions = 0, frames = 0;
  // The most bytes of the heap in use between two sessions, in the second and in the last quarter.
  std::size_t early = 0, late = 0;
};

// Random variation between the two. More is growth.
inline constexpr std::size_t kSoakSlack = std::size_t{32} << 10;

// Nothing else may run in this process, because its whole heap is measured.
SoakResult play_soak(Time span, std::uint64_t seed);

}  // namespace stp::sim
