// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/arp.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dpdk_port/link/engine.h"
#include "stp/base/assert.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {

void AddressGuard::begin(std::optional<Ipv4> address, Time now) {
  if (address != address_) other_.reset();
  address_ = address;
  probes_ = owns_ && address ? kProbes : 0;
  announcements_ = owns_ && address ? kAnnouncements : 0;
  unanswered_ = 0;
  next_ = probes_ != 0 || other_ ? now + kProbeWait : kNever;
}

AddressGuard::Speech AddressGuard::due(Time now) {
  if (std::exchange(defend_, false)) {
    defended_ = now;
    return Speech::kAnnouncement;
  }
  if (now < next_) return Speech::kNone;
  if (!other_) return next_of_beginning(now);
  if (unanswered_ >= kUnanswered) {
    other_.reset();
    next_ = kNever;
    return Speech::kNone;
  }
  ++unanswered_;
  next_ = now + kDefendInterval;
  return Speech::kProbe;
}

AddressGuard::Speech AddressGuard::next_of_beginning(Time now) {
  if (probes_ != 0) {
    next_ = now + (--probes_ != 0 ? kProbeInterval : kAnnounceWait);
    return Speech::kProbe;
  }
  if (announcements_ == 0) {
    next_ = kNever;
    return Speech::kNone;
  }
  next_ = --announcements_ != 0 ? now + kAnnounceInterval : kNever;
  return Speech::kAnnouncement;
}

// A station that probes for the address while we probe wants it as well.
void AddressGuard::hear(const MacAddr& sender, Ipv4 sender_ip, Ipv4 target_ip, Time now) {
  if (!address_) return;
  const bool uses_it = sender_ip == *address_;
  const bool wants_it = probes_ != 0 && sender_ip.value == 0 && target_ip == *address_;
  if (!uses_it && !wants_it) return;
  unanswered_ = 0;
  if (owns_ && uses_it && (defended_ == kNever || now - defended_ >= kDefendInterval)) {
    defend_ = true;
  }
  if (other_) return;
  other_ = sender;
  probes_ = announcements_ = 0;
  next_ = now + kDefendInterval;
}

namespace {

constexpr std::uint16_t kEthernetHardware = 1, kIpv4Protocol = 0x0800;
constexpr std::uint16_t kRequest = 1, kReply = 2;
constexpr MacAddr kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::uint32_t kLoopbackNet = 127;

// Positions inside the packet (RFC 826, with the address lengths of Ethernet and IPv4).
constexpr std::size_t kAtHardware = 0, kAtProtocol = 2, kAtLengths = 4, kAtOperation = 6,
                      kAtSenderMac = 8, kAtSenderIp = 14, kAtTargetMac = 18, kAtTargetIp = 24,
                      kPacketSize = 28;
constexpr std::uint16_t kAddressLengths = 6 << 8 | 4;

static_assert(wire::kEthernetSize + wire::kVlanSize + wire::kMinPayload <= Arp::kFrameSize);

void store_mac(std::byte* at, const MacAddr& mac) {
  std::memcpy(at, mac.octets.data(), 6);
}
MacAddr load_mac(const std::byte* at) {
  MacAddr mac;
  std::memcpy(mac.octets.data(), at, 6);
  return mac;
}

bool is_well_formed(Bytes packet) {
  return packet.size() >= kPacketSize && wire::load16(&packet[kAtHardware]) == kEthernetHardware &&
         wire::load16(&packet[kAtProtocol]) == kIpv4Protocol &&
         wire::load16(&packet[kAtLengths]) == kAddressLengths;
}

}  // namespace

bool is_this_host(Ipv4 address, std::optional<Ipv4> own) {
  return address == own || address.value >> 24 == kLoopbackNet;
}

bool Arp::is_known(const Entry& entry, Time now) {
  return entry.learned != kNever && now - entry.learned < kLifetime;
}

Time Arp::last_used(const Entry& entry) {
  if (entry.learned == kNever) return entry.asked;
  return entry.asked == kNever ? entry.learned : std::max(entry.learned, entry.asked);
}

std::optional<MacAddr> Arp::resolve(Ipv4 address, Time now) {
  const Lock lock(mutex_);
  if (is_this_host(address, config_.address)) return config_.mac;
  if (const auto known = config_.fixed.find(address); known != config_.fixed.end()) {
    return known->second;
  }
  Entry& entry = entry_for(address);
  if (is_known(entry, now)) return entry.mac;
  if (entry.asked == kNever || now - entry.asked >= kAskInterval) {
    // A request without room is sent at the next call.
    if (send({true, kBroadcast, address})) entry.asked = now;
  }
  return std::nullopt;
}

void Arp::begin(std::optional<Ipv4> address, Time now) {
  const Lock lock(mutex_);
  config_.address = address;
  guard_.begin(address, now);
}

void Arp::tend(Time now) {
  const Lock lock(mutex_);
  if (twin_ && now - twin_heard_ >= kLifetime) twin_.reset();
  const AddressGuard::Speech speech = guard_.due(now);
  if (speech == AddressGuard::Speech::kNone || !config_.address) return;
  send({.request = true,
        .to = kBroadcast,
        .address = *config_.address,
        .guards = true,
        .as_nobody = speech == AddressGuard::Speech::kProbe});
}

bool Arp::receive(Bytes frame, Time now) {
  const auto packet = arp_packet(frame);
  if (!packet) return false;
  const Lock lock(mutex_);
  if (is_well_formed(*packet)) {
    handle(*packet, now);
  } else {
    ++counters_.ignored;
  }
  return true;
}

void Arp::handle(Bytes packet, Time now) {
  const MacAddr sender = load_mac(&packet[kAtSenderMac]);
  const Ipv4 sender_ip{wire::load32(&packet[kAtSenderIp])};
  const Ipv4 target_ip{wire::load32(&packet[kAtTargetIp])};
  const std::uint16_t operation = wire::load16(&packet[kAtOperation]);
  const bool is_station = !sender.is_group() && !sender.is_zero() && sender != config_.mac;
  if (is_station) {
    const bool alone = !guard_.conflict();
    guard_.hear(sender, sender_ip, target_ip, now);
    if (alone && guard_.conflict()) ++counters_.conflicts;
  }
  const bool is_ours = sender_ip == config_.address;
  if (sender == config_.mac && !is_ours && sender_ip.value != 0) {
    twin_ = sender_ip;
    twin_heard_ = now;
  }
  if (!is_station || is_ours) {
    ++counters_.ignored;
    return;
  }
  const bool asks_us = operation == kRequest && config_.address && target_ip == *config_.address;
  const auto known = entries_.find(sender_ip.value);
  // Learns stations that ask us, because they will talk to us, and stations that we asked about. So
  // nobody can fill the table with unsolicited answers.
  if (known != entries_.end()) {
    learn(known->second, sender, now);
  } else if (asks_us && sender_ip.value != 0) {
    learn(entry_for(sender_ip), sender, now);
  } else if (!asks_us) {
    ++counters_.ignored;
  }
  if (asks_us && config_.answers) send({false, sender, sender_ip});
}

void Arp::learn(Entry& entry, const MacAddr& mac, Time now) {
  if (!is_known(entry, now) || entry.mac != mac) ++counters_.learned;
  entry.mac = mac;
  entry.learned = now;
}

bool Arp::is_wanted(const Entry& entry) {
  return entry.asked != kNever && entry.learned != kNever;
}

Arp::Entry& Arp::entry_for(Ipv4 address) {
  const auto known = entries_.find(address.value);
  if (known != entries_.end()) return known->second;
  if (entries_.size() >= kMaxEntries) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
      return std::pair(is_wanted(a.second), last_used(a.second)) <
             std::pair(is_wanted(b.second), last_used(b.second));
    }));
  }
  STP_ASSERT(entries_.size() < kMaxEntries, "the table has room for a new entry");
  return entries_[address.value];
}

// Each kind has its own room: a flood of requests to us does not block our own requests.
bool Arp::send(const Waiting& frame) {
  STP_ASSERT(requests_waiting_ <= waiting_.size(), "the requests that wait are among what waits");
  const auto like_it = frame.request ? requests_waiting_ : waiting_.size() - requests_waiting_;
  if (like_it >= kMaxWaiting) {
    ++counters_.dropped;
    return false;
  }
  if (frame.request) ++requests_waiting_;
  waiting_.push_back(frame);
  any_waiting_.store(true, std::memory_order_relaxed);
  return true;
}

std::size_t Arp::take(std::byte* out) {
  if (!has_waiting()) return 0;
  const Lock lock(mutex_);
  if (waiting_.empty()) return 0;
  const Waiting frame = waiting_.front();
  waiting_.pop_front();
  any_waiting_.store(!waiting_.empty(), std::memory_order_relaxed);
  STP_ASSERT(!frame.request || requests_waiting_ > 0, "a request that waited was counted");
  if (frame.request) --requests_waiting_;
  ++(frame.guards    ? counters_.probes_sent
     : frame.request ? counters_.requests_sent
                     : counters_.answers_sent);

  std::memset(out, 0, kFrameSize);
  store_mac(out, frame.to);
  store_mac(out + 6, config_.mac);
  std::byte* type = out + 12;
  if (config_.vlan) {
    wire::store16(type, wire::kVlanEtherType);
    wire::store16(type + 2, *config_.vlan);
    type += wire::kVlanSize;
  }
  wire::store16(type, kArpEtherType);
  std::byte* const packet = type + 2;
  wire::store16(packet + kAtHardware, kEthernetHardware);
  wire::store16(packet + kAtProtocol, kIpv4Protocol);
  wire::store16(packet + kAtLengths, kAddressLengths);
  wire::store16(packet + kAtOperation, frame.request ? kRequest : kReply);
  store_mac(packet + kAtSenderMac, config_.mac);
  wire::store32(packet + kAtSenderIp,
                config_.address && !frame.as_nobody ? config_.address->value : 0);
  if (!frame.request) store_mac(packet + kAtTargetMac, frame.to);
  wire::store32(packet + kAtTargetIp, frame.address.value);
  return static_cast<std::size_t>(packet - out) + wire::kMinPayload;
}

}  // namespace stp::port
