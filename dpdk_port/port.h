// SPDX-License-Identifier: BSD-3-Clause
// One shard of a link, driving one Node; most links have one shard. Contains no DPDK types, so
// users need no DPDK header.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_counters.h"
#include "stp/node/node.h"
#include "stp/node/shards.h"

namespace stp::port {

struct PortInfo {
  std::string link;    // as written
  std::string device;  // the ethdev's name; "loop" for the loop link
  std::string driver;
  MacAddr mac;
  unsigned mtu = 0;
  unsigned max_stu = 0;   // log2, from the MTU: 2^max_stu + 40 + 64 <= mtu
  bool attaches = false;  // transmit attaches user memory to frames
  // The frames that wait until somebody polls; further ones are lost. 0: the link loses none.
  std::size_t receive_queue = 0;
  std::optional<Ipv4> address;  // an interface's address may change
  // A link of UDP sockets: its port; that of peers for which a user names none; whether it carries
  // IPv6. 0: its stations have MAC addresses.
  std::uint16_t udp_port = 0, peer_udp_port = 0;
  bool ipv6 = false;
  bool internet = false;  // stations have IP addresses: it is one of UDP, or of IP itself
  // Of these links: whether it is at one of this host's addresses only, and which interface it is
  // bound to (0: none), which may change. Another address of the host may be that of another link.
  bool one_address = false;
  unsigned interface = 0;
  // As in NodeConfig. `sources` and `ways` live as long as the Port.
  bool routed = false;
  SharedWays* ways = nullptr;
  bool marks = false;
  const Sources* sources = nullptr;
  unsigned megabits = 0;  // speed of the line, Mbit/s; 0: not known. May change
  // The shards behind that address, for NodeConfig::shards. nullptr: only this one.
  std::shared_ptr<Shards> shards;
  unsigned shard = 0;
};

// Sees every frame of the link, both ways; for traces. Sees a frame to our own address once, when
// it is sent. The frame is `head` followed by `rest`.
class Tap {
 public:
  virtual ~Tap() = default;
  virtual void frame(Bytes head, Bytes rest, bool sent) = 0;
};

// Destroy a Port before its Node and before the memory that the Node's regions map: frames waiting
// in the Port may read that memory until then. Their tokens are not returned. One thread at a time
// may call a Port, not always the same one.
class Port {
 public:
  // Opens all shards that the link asks for, in order. Empty: `error` names the link and the
  // reason. Not for LinkKind::kStpd. Each may run in its own thread. Poll all of them as long as
  // one is polled: the first looks after the device, and each may hold frames for another. Destroy
  // them in any order.
  static std::vector<std::unique_ptr<Port>> open_shards(const LinkConfig& config, OpenError& error);
  virtual ~Port() = default;

  [[nodiscard]] virtual const PortInfo& info() const = 0;

  // One turn: runs the Node's timers, sends its frames, passes received bursts to it. Answers to
  // these leave in the next turn. Returns the number of frames moved; 0 means idle.
  virtual unsigned poll(Node& node, Time now) = 0;

  // The last step of name resolution. nullopt: not known (yet); ask again after some poll() calls.
  // Sends at most one ARP request per 100 ms and address.
  virtual std::optional<MacAddr> resolve(Ipv4 address, Time now) = 0;

  // The same by an address of either kind. Its port may be 0: PortInfo::peer_udp_port. A
  // link without UDP knows no IPv6 addresses. `is_new`: it got a place in a table of stations,
  // which has an end.
  virtual std::optional<MacAddr> find_station(const InternetAddress& address, Time now,
                                              bool* is_new = nullptr) {
    if (is_new != nullptr) *is_new = false;
    const auto four = address.ipv4();
    return four ? resolve(*four, now) : std::nullopt;
  }

  virtual void set_tap(Tap* tap) = 0;  // nullptr: none
  [[nodiscard]] virtual std::vector<PortCounter> counters() const = 0;
  // As of the last turn.
  [[nodiscard]] virtual LinkState state() const = 0;
  [[nodiscard]] bool link_up() const { return carries_frames(state()); }
  // What prevents the link from carrying all frames, and the remedy; "": nothing known.
  [[nodiscard]] virtual std::string trouble() const { return {}; }
  // The same of frames for one station. A link that tells stations apart leaves out what concerns
  // others only.
  [[nodiscard]] virtual std::string trouble_of(const MacAddr& /*station*/) const {
    return trouble();
  }
  // Somebody has reported lately that what is sent to that station does not get there. Anybody may
  // have forged that.
  [[nodiscard]] virtual bool is_reported_gone(const MacAddr& /*station*/) const { return false; }
  // How users name that station, without a port of STP: 10.0.0.5/8181, [2001:db8::5]/8181, or its
  // MAC address in brackets.
  [[nodiscard]] virtual std::string name_of_station(const MacAddr& station) const {
    return "[" + to_string(station) + "]";
  }
  // What decides which shard a received frame comes to first, and why; "": there is one shard. The
  // first shard knows.
  [[nodiscard]] virtual std::string steering() const { return {}; }
  // Readable while received frames wait for poll(), at least from a prepare_to_sleep() that
  // returned true until woke_up(); -1: the driver has no such descriptor. It belongs to the Port:
  // use it only to sleep on.
  [[nodiscard]] virtual int wake_fd() const { return -1; }
  // What wake_fd() is worth at present.
  enum class Wakes {
    kNever,   // look for frames, often
    kMostly,  // look now and then: a frame that comes as this thread falls asleep may not wake it
    kAlways
  };
  [[nodiscard]] virtual Wakes wakes() const {
    return wake_fd() < 0 ? Wakes::kNever : Wakes::kAlways;
  }

  // Sets `bell`, an eventfd that outlives the Port. Other shards write to it when they pass on
  // frames while this shard's thread sleeps, that is between a prepare_to_sleep() that returned
  // true and woke_up().
  virtual void set_bell(int /*bell*/) {}
  // False: do not sleep; frames have arrived from another shard, or sending may go on.
  virtual bool prepare_to_sleep() { return true; }
  virtual void woke_up() {}
};

// What an operator should know about this machine, found while links were opened. Told once; "":
// nothing.
std::string take_notice();

// The Port of a link for which something is absent (link/interfaces.h): one shard that carries
// nothing, until a daemon opens the link in its place.
std::vector<std::unique_ptr<Port>> absent_link(const LinkConfig& config);

}  // namespace stp::port
