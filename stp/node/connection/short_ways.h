// SPDX-License-Identifier: BSD-3-Clause
// The stations to which longer Request_Connections got no answer, but shorter ones did.
#pragma once

#include <array>
#include <cstdint>

#include "stp/types.h"

namespace stp {

// Only answers to a user's own requests get a station in here. What it costs to be wrong is a few
// frames: who asks such a station asks with all lengths at once.
// protocol: 13.20
class ShortWays {
 public:
  static constexpr Time kMemory = 600 * kSecond;
  static constexpr std::size_t kCapacity = 64;

  [[nodiscard]] bool has(const MacAddr& station, Time now) const {
    const auto& place = places_[index(station)];
    return place.station == station && now < place.until;
  }
  void add(const MacAddr& station, Time now) { places_[index(station)] = {station, now + kMemory}; }
  void remove(const MacAddr& station) {
    auto& place = places_[index(station)];
    if (place.station == station) place = {};
  }

 private:
  struct Place {
    MacAddr station;
    Time until = 0;
  };
  // Of two stations with one place, the newer one has it.
  static std::size_t index(const MacAddr& station) {
    return (station.to_u64() * 0x9e3779b97f4a7c15 >> 48) % kCapacity;
  }
  std::array<Place, kCapacity> places_{};
};

}  // namespace stp
