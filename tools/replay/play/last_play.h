// SPDX-License-Identifier: BSD-3-Clause
// When a play over a link has last made connections with a station. For 4 s the station takes the
// requests of a second play for late duplicates of the first (protocol 5.10).
#pragma once

#include <chrono>
#include <string>

#include "stp/types.h"

namespace stp::replay {

class LastPlay {
 public:
  static constexpr std::chrono::milliseconds kRemembered{4'000};

  // On the machine; a name of its own for each network namespace, interface and station.
  static LastPlay with(int interface, const MacAddr& station);
  // Kept as the time of this file. "": nowhere, and nothing is known.
  explicit LastPlay(std::string path) : path_(std::move(path)) {}

  // How long the station may still remember.
  [[nodiscard]] std::chrono::milliseconds remembered() const;
  void note() const;  // connections have been made until now

 private:
  std::string path_;
};

}  // namespace stp::replay
