// SPDX-License-Identifier: BSD-3-Clause
// To which stations the kernel does not send. While it looks for a station of this subnet that
// answers no question (ARP, neighbor discovery), it keeps what is for it, up to 208 KiB for three
// seconds, and counts that in the send buffer of the socket. So stations that answer no question,
// though they have shown that they are there, or addresses that nobody has, could fill a buffer
// that others need.
//
// Where a buffer is filled beyond a quarter, each station is therefore sent a lone datagram first,
// of which the kernel tells that it leaves for an interface: at once, unless the kernel keeps it.
// Then nothing else is sent there for a while.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dpdk_port/udp/udp_socket.h"
#include "stp/base/keyed_hash.h"
#include "stp/types.h"

namespace stp::port {

class Departures {
 public:
  // That long what is for a station goes without another question. That long none of it goes: four
  // times as long each time, because a station that answers is found within a moment.
  static constexpr Time kLeaves = kMillisecond, kKept = 50 * kMillisecond, kKeptMost = kSecond;

  explicit Departures(Random& random) { hash_.draw(random); }

  // Whether the buffer of the socket is filled so far, which is always the same one. `bytes` are
  // about to be sent: the kernel is asked when some have been, and each time as long as it is so.
  [[nodiscard]] bool is_crowded(const UdpSocket& socket, std::size_t bytes, Time now) {
    if (!crowded_ && (sent_ += bytes) < socket.send_bytes() / kLooks) return false;
    sent_ = 0;
    crowded_ = socket.unsent() > socket.send_bytes() / kCrowd && tells(now);
    return crowded_;
  }

  enum class Way : std::uint8_t { kFree, kUnknown, kKept };
  [[nodiscard]] Way way_to(const MacAddr& station, Time now) const {
    const Place& place = places_[index(station)];
    if (place.station != station.to_u64() || now >= place.until) return Way::kUnknown;
    return place.kept_for > 0 ? Way::kKept : Way::kFree;
  }
  // Whether one has left for it lately: while there is no room to ask, that counts.
  [[nodiscard]] bool has_left(const MacAddr& station, Time now) const {
    const Place& place = places_[index(station)];
    return place.station == station.to_u64() && place.kept_for == 0 && now < place.until + kLately;
  }
  // A datagram has been sent there, and has left, or not.
  void note(const MacAddr& station, bool left, Time now) {
    Place& place = places_[index(station)];
    const bool again = place.station == station.to_u64() && place.kept_for > 0;
    const Time kept_for = again ? std::min(4 * place.kept_for, kKeptMost) : kKept;
    place = {station.to_u64(), now + (left ? kLeaves : kept_for), left ? 0 : kept_for};
  }

 private:
  static constexpr std::size_t kCrowd = 4, kLooks = 16;
  static constexpr Time kTryAgain = kSecond, kLately = 3 * kSecond;
  // Of two stations with one place, the one that was asked about last has it.
  static constexpr unsigned kBits = 11;
  // Of a kernel that never tells nothing is known.
  [[nodiscard]] bool tells(Time now) {
    if (tells_ || now < try_again_) return tells_;
    try_again_ = now + kTryAgain;
    return tells_ = UdpSocket::kernel_tells(now);
  }
  [[nodiscard]] std::size_t index(const MacAddr& station) const {
    return hash_(std::array{station.to_u64()}) >> (64 - kBits);
  }
  struct Place {
    std::uint64_t station = 0;
    Time until = 0;
    Time kept_for = 0;  // 0: it leaves
  };

  KeyedHash hash_;  // nobody knows which stations have one place
  std::size_t sent_ = 0;
  bool crowded_ = false;
  bool tells_ = false;
  Time try_again_ = 0;
  std::array<Place, std::size_t{1} << kBits> places_{};
};

}  // namespace stp::port
