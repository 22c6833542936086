// SPDX-License-Identifier: BSD-3-Clause
// ARP (RFC 826) for one address: a bounded cache that asks and learns, and an answerer. It does no
// IO: frames that arrive are shown to it, frames to send are taken from it. Any thread may ask it,
// for all shards of a link have one; frames that are no ARP take no lock.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "dpdk_port/link/address_guard.h"
#include "dpdk_port/link/link.h"
#include "stp/types.h"

namespace stp::port {

// Our own address, or one of 127.0.0.0/8.
bool is_this_host(Ipv4 address, std::optional<Ipv4> own);

struct ArpConfig {
  MacAddr mac;
  std::optional<Ipv4> address;        // ours; without one, requests are sent as probes
  bool answers = false;               // false: the kernel answers for the address
  std::optional<std::uint16_t> vlan;  // tag what is sent
  Stations fixed = {};                // not asked for, whatever others say
};

struct ArpCounters {
  std::uint64_t requests_sent = 0;
  std::uint64_t answers_sent = 0;
  std::uint64_t learned = 0;      // addresses that came to be known, or known anew
  std::uint64_t ignored = 0;      // ARP frames that were malformed or did not concern us
  std::uint64_t dropped = 0;      // frames not sent: too many waited
  std::uint64_t probes_sent = 0;  // and announcements, of our own address
  std::uint64_t conflicts = 0;    // times that another station was found to have our address
};

class Arp {
 public:
  explicit Arp(const ArpConfig& config) : config_(config), guard_(config.answers) {}

  static constexpr Time kAskInterval = 100 * kMillisecond;
  static constexpr Time kLifetime = 60 * kSecond;
  static constexpr std::size_t kMaxEntries = 1024;
  static constexpr std::size_t kMaxWaiting = 32;  // requests, and answers, that wait to be sent
  static constexpr std::size_t kFrameSize = 64;   // bytes of a frame to send, at most

  // nullopt: not known (yet); a request goes out, at most one per kAskInterval and address.
  std::optional<MacAddr> resolve(Ipv4 address, Time now);

  // The link has come up, or its address has become another one: asks whether somebody has it.
  void begin(std::optional<Ipv4> address, Time now);
  // Sends what is due for that. Often.
  void tend(Time now);
  // Who else has our address.
  [[nodiscard]] std::optional<MacAddr> conflict() const {
    const std::lock_guard lock(mutex_);
    return guard_.conflict();
  }

  // True: the frame was ARP and is no business of anybody else.
  bool receive(Bytes frame, Time now);

  // Writes the next frame to send (at most kFrameSize bytes) and returns its length; 0: none waits.
  std::size_t take(std::byte* out);

  [[nodiscard]] ArpCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  struct Entry {
    MacAddr mac;
    Time learned = kNever;
    Time asked = kNever;
  };
  struct Waiting {
    bool request;
    MacAddr to;
    Ipv4 address;
    bool guards = false;     // asks for our own address, or announces it
    bool as_nobody = false;  // without telling whose question it is
  };

  static bool is_known(const Entry& entry, Time now);
  static Time last_used(const Entry& entry);
  // Asked for by us, and answered. What others say by themselves never displaces it.
  static bool is_wanted(const Entry& entry);
  Entry& entry_for(Ipv4 address);
  void learn(Entry& entry, const MacAddr& mac, Time now);
  void handle(Bytes packet, Time now);
  bool send(const Waiting& frame);  // false: too many of its kind wait

  mutable std::mutex mutex_;  // of all that follows
  ArpConfig config_;
  std::unordered_map<std::uint32_t, Entry> entries_;
  std::deque<Waiting> waiting_;
  std::atomic<bool> any_waiting_{false};  // to be looked at without the lock
  std::size_t requests_waiting_ = 0;
  ArpCounters counters_;
  AddressGuard guard_;
};

}  // namespace stp::port
