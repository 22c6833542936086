// SPDX-License-Identifier: BSD-3-Clause
// One shard of a link, driving one Node: mostly the only one. No DPDK type shows here, so users
// need no DPDK header.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/link/clock.h"
#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"
#include "dpdk_port/link/random.h"
#include "stp/node/node.h"
#include "stp/node/shards.h"

namespace stp::port {

struct PortInfo {
  std::string link;    // as written
  std::string device;  // the ethdev's name; "loop" for the loop link
  std::string driver;
  MacAddr mac;
  unsigned mtu = 0;
  unsigned max_stu = 0;         // exponent, from the MTU: 2^max_stu + 40 + 64 <= mtu
  bool attaches = false;        // transmit attaches user memory to frames
  std::optional<Ipv4> address;  // the interface's own may change
  // Who else is behind that address, for its Node (NodeConfig::shards). nullptr: nobody.
  std::shared_ptr<Shards> shards;
  unsigned shard = 0;
};

// What the link itself counts, beside the Node's counters.
struct PortCounter {
  std::string name;  // "link_rx_missed", "arp_requests_sent", ...
  std::uint64_t value;
};

// Sees every frame of the link, both ways; for traces. A frame to our own address is seen once, as
// sent. The frame is `head` followed by `rest`.
class Tap {
 public:
  virtual ~Tap() = default;
  virtual void frame(Bytes head, Bytes rest, bool sent) = 0;
};

// A Port is destroyed before its Node, and before the memory that the Node's regions map: frames
// that wait in it may read that memory until then. The tokens of those frames are not given back.
// One thread at a time may be inside a Port; it need not be the same one.
class Port {
 public:
  // nullptr: `error` names the link and the reason. Not for LinkKind::kStpd.
  // One shard alone: a link that asks for several is an error.
  static std::unique_ptr<Port> open(const LinkConfig& config, std::string& error);
  // As many as the link asks for, in their order; empty: `error`. Each may be in a thread of its
  // own. All of them have to be polled as long as one of them is: the first one has the device, and
  // any of them may have frames of another's. They may be destroyed in any order.
  static std::vector<std::unique_ptr<Port>> open_shards(const LinkConfig& config,
                                                        std::string& error);
  virtual ~Port() = default;

  [[nodiscard]] virtual const PortInfo& info() const = 0;

  // One turn: runs the Node's timers, sends what it has, receives bursts into it. What these are
  // answered with goes out in the next turn. Returns the frames moved; 0 means idle.
  virtual unsigned poll(Node& node, Time now) = 0;

  // Name resolution, last step. nullopt: not known (yet); ask again after poll() has run a while.
  // Sends at most one ARP request per 100 ms and address.
  virtual std::optional<MacAddr> resolve(Ipv4 address, Time now) = 0;

  virtual void set_tap(Tap* tap) = 0;  // nullptr: none
  [[nodiscard]] virtual std::vector<PortCounter> counters() const = 0;
  // As of the last turn.
  [[nodiscard]] virtual LinkState state() const = 0;
  [[nodiscard]] bool link_up() const { return carries_frames(state()); }
  // What keeps the link from carrying all frames, and the remedy; "": nothing that is known.
  [[nodiscard]] virtual std::string trouble() const { return {}; }
  // Readable while frames have arrived that poll() has not taken; -1: this driver has no such
  // descriptor. The Port's own: to be slept on, and nothing else.
  [[nodiscard]] virtual int wake_fd() const { return -1; }

  // What other shards hand over writes `bell`, an eventfd that outlives the Port, while who polls
  // sleeps: between prepare_to_sleep(), where that returned true, and woke_up().
  virtual void set_bell(int /*bell*/) {}
  // False: something was handed over, or may go on, meanwhile.
  virtual bool prepare_to_sleep() { return true; }
  virtual void woke_up() {}
};

}  // namespace stp::port
