// SPDX-License-Identifier: BSD-3-Clause
// Which stations get long datagrams, and answer. If some way carries shorter packets only, and no
// router says so, that is all that a link sees of it: a station that is there, and from which
// nothing comes back for the long ones. Whether they arrived, the link cannot know.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "stp/types.h"

namespace stp::port {

class UdpWays {
 public:
  // The longest datagrams that any way with IPv6 carries, with the headers before them.
  static constexpr std::size_t kEverywhere = 1'280 - 48;
  // What was sent counts so long, and an answer.
  static constexpr Time kSent = 10 * kSecond, kHeard = 3 * kSecond;

  void sent(const MacAddr& to, std::size_t bytes, Time now) {
    if (bytes <= kEverywhere) return;
    const std::uint64_t name = to.to_u64();
    Way& way = place(name);
    if (way.name != name || now - way.sent > kSent) way = {name, 0, now, kNever};
    way.longest = std::max(way.longest, bytes);
    way.sent = now;
  }
  // Strangers, who get nothing that is long, take no place.
  void heard(const MacAddr& from, Time now) {
    Way& way = place(from.to_u64());
    if (way.name == from.to_u64()) way.heard = now;
  }
  // The longest of the datagrams that were sent lately to a station that answers. 0: none.
  [[nodiscard]] std::size_t longest(const MacAddr& station, Time now) const {
    const Way& way = ways_[index(station.to_u64())];
    const bool answers = way.heard != kNever && now - way.heard <= kHeard;
    return way.name == station.to_u64() && answers && now - way.sent <= kSent ? way.longest : 0;
  }

 private:
  struct Way {
    std::uint64_t name = 0;
    std::size_t longest = 0;
    Time sent = 0, heard = kNever;
  };
  // Of two stations with one place, the one that was sent to last has it.
  static constexpr unsigned kBits = 9;
  static std::size_t index(std::uint64_t name) {
    return (name * 0x9e37'79b9'7f4a'7c15) >> (64 - kBits);
  }
  Way& place(std::uint64_t name) { return ways_[index(name)]; }

  std::array<Way, std::size_t{1} << kBits> ways_{};
};

}  // namespace stp::port
