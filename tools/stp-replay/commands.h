// SPDX-License-Identifier: BSD-3-Clause
// The commands of stp-replay. Each prints what it finds and returns the exit status.
#pragma once

#include <string>

#include "tools/replay/check/checker.h"

namespace stp::replay {

inline constexpr int kNothingWrong = 0, kFindings = 1, kCannotRead = 2;

struct Options {
  std::string file;
  bool json = false;
  CheckerOptions check;
  std::string station;  // play: the station to replace; check: where the capture was made
  std::string link;     // play: an interface; empty: a Node in this program
};

int decode(const Options& options);
int check(const Options& options);
int play(const Options& options);
int list_rules(const Options& options);

}  // namespace stp::replay
