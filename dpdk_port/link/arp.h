// SPDX-License-Identifier: BSD-3-Clause
// ARP (RFC 826): who has which address, and whether another station has ours (RFC 5227).
#pragma once

#include <atomic>
#include <deque>
#include <optional>
#include <unordered_map>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_counters.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::port {

// Detects another station with our IPv4 address (RFC 5227). It probes when the link comes up,
// announces the address if the link itself answers for it, and listens for other users of it. We
// use the address meanwhile: whoever assigned it is told of a conflict and decides. It does no IO.
class AddressGuard {
 public:
  // `owns` true: the link answers for the address, so this probes and announces. False: the kernel
  // does; this only listens, and after a conflict probes whether it is over.
  explicit AddressGuard(bool owns) : owns_(owns) {}

  // Restarts: with another address (nullopt: none), or when the link has come up.
  void begin(std::optional<Ipv4> address, Time now);

  enum class Speech { kNone, kProbe, kAnnouncement };
  // What to send now. A probe asks for the address without a sender address; an announcement names
  // us as its owner.
  Speech due(Time now);
  // An ARP packet from a station with another MAC address than ours.
  void hear(const MacAddr& sender, Ipv4 sender_ip, Ipv4 target_ip, Time now);

  // The first other station heard that has the address, if any.
  [[nodiscard]] std::optional<MacAddr> conflict() const { return other_; }

  // RFC 5227's constants; fixed intervals, the middle of its random ones.
  static constexpr unsigned kProbes = 3, kAnnouncements = 2;
  static constexpr Time kProbeWait = 500 * kMillisecond;
  static constexpr Time kProbeInterval = 1500 * kMillisecond;
  static constexpr Time kAnnounceWait = 2 * kSecond, kAnnounceInterval = 2 * kSecond;
  static constexpr Time kDefendInterval = 10 * kSecond;
  // A conflict is over after this many probes in a row without an answer.
  static constexpr unsigned kUnanswered = 3;

 private:
  Speech next_of_beginning(Time now);

  const bool owns_;
  std::optional<Ipv4> address_;
  std::optional<MacAddr> other_;
  unsigned probes_ = 0, announcements_ = 0;  // still to be sent
  unsigned unanswered_ = 0;
  Time next_ = kNever;      // time of the next probe or announcement
  Time defended_ = kNever;  // when the address was last defended; kNever: never
  bool defend_ = false;
};

// Our own address, or one of 127.0.0.0/8.
bool is_this_host(Ipv4 address, std::optional<Ipv4> own);

struct ArpConfig {
  MacAddr mac;
  std::optional<Ipv4> address;        // ours; without it, requests are sent as probes
  bool answers = false;               // false: the kernel answers for the address
  std::optional<std::uint16_t> vlan;  // tag for frames sent
  Stations fixed = {};                // static entries: never asked for or changed
};

// ARP (RFC 826) for one address: a bounded cache that asks and learns, and an answerer. It does no
// IO: pass it the frames that arrive, and take the frames to send. Thread-safe, because all shards
// of a link share one. Frames other than ARP take no lock.
class Arp {
 public:
  explicit Arp(const ArpConfig& config) : config_(config), guard_(config.answers) {}

  static constexpr Time kAskInterval = 100 * kMillisecond;
  static constexpr Time kLifetime = 60 * kSecond;
  static constexpr std::size_t kMaxEntries = 1024;
  static constexpr std::size_t kMaxWaiting = 32;  // waiting requests at most, and answers
  static constexpr std::size_t kFrameSize = 64;   // the most bytes of a frame to send

  // nullopt: not known (yet). Sends a request, at most one per kAskInterval and address.
  std::optional<MacAddr> resolve(Ipv4 address, Time now);

  // The link has come up, or its address has changed: checks for a conflict.
  void begin(std::optional<Ipv4> address, Time now);
  // Queues the frames due for that check, and forgets a twin that has fallen silent. Call often.
  void tend(Time now);
  // The other station with our address, if any.
  [[nodiscard]] std::optional<MacAddr> conflict() const {
    const Lock lock(mutex_);
    return guard_.conflict();
  }

  // The address of another station with our MAC address, heard in the last kLifetime.
  [[nodiscard]] std::optional<Ipv4> twin() const {
    const Lock lock(mutex_);
    return twin_;
  }

  // True: the frame was ARP; nobody else needs it.
  bool receive(Bytes frame, Time now);

  // Whether a frame is to be sent; mostly none is.
  [[nodiscard]] bool has_waiting() const { return any_waiting_.load(std::memory_order_relaxed); }
  // Writes the next frame to send (at most kFrameSize bytes) and returns its length; 0: none waits.
  std::size_t take(std::byte* out);

  [[nodiscard]] ArpCounters counters() const {
    const Lock lock(mutex_);
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
    bool guards = false;     // a probe or announcement of our own address
    bool as_nobody = false;  // without our address as the sender
  };

  static bool is_known(const Entry& entry, Time now);
  static Time last_used(const Entry& entry);
  // Whether we have asked for it and got an answer. Unsolicited ARP never displaces such an entry.
  static bool is_wanted(const Entry& entry);
  Entry& entry_for(Ipv4 address) STP_REQUIRES(mutex_);
  void learn(Entry& entry, const MacAddr& mac, Time now) STP_REQUIRES(mutex_);
  void handle(Bytes packet, Time now) STP_REQUIRES(mutex_);
  // False: too many of its kind wait.
  bool send(const Waiting& frame) STP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  ArpConfig config_ STP_GUARDED_BY(mutex_);
  std::unordered_map<std::uint32_t, Entry> entries_ STP_GUARDED_BY(mutex_);
  std::deque<Waiting> waiting_ STP_GUARDED_BY(mutex_);
  std::atomic<bool> any_waiting_{false};  // for a check without the lock
  std::size_t requests_waiting_ STP_GUARDED_BY(mutex_) = 0;
  ArpCounters counters_ STP_GUARDED_BY(mutex_);
  AddressGuard guard_ STP_GUARDED_BY(mutex_);
  std::optional<Ipv4> twin_ STP_GUARDED_BY(mutex_);
  Time twin_heard_ STP_GUARDED_BY(mutex_) = 0;
};

}  // namespace stp::port
