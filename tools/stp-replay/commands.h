// SPDX-License-Identifier: BSD-3-Clause
// The commands of stp-replay. Each prints what it finds and returns the exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/replay/check/checker.h"

namespace stp::replay {

inline constexpr int kNothingWrong = 0, kFindings = 1, kCannotRead = 2;

struct Options {
  std::string file;
  bool json = false;
  CheckerOptions check;
  std::string station;  // play: the station to replace; check: where the capture was made
  std::string link;     // play: an interface; empty: a Node in this program
  std::vector<std::uint16_t> udp_ports;  // of STP, besides the usual one
  // ladder:
  std::string out;    // the file that is written; its ending says what: .html or .svg
  std::string pages;  // the address of the folder of protocol.md, for links
  std::uint64_t from = 1;
  std::size_t frames = 0;  // at most; 0: as many as the kind of file bears
};

int decode(const Options& options);
int check(const Options& options);
int ladder(const Options& options);
int play(const Options& options);
int list_rules(const Options& options);

}  // namespace stp::replay
