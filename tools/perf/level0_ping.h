// SPDX-License-Identifier: BSD-3-Clause
// A ping-pong at level 0: each side puts a Block into the other's memory by st_tx, and learns of
// the other's Block from the header that st_rx returns.
#pragma once

#include "tools/perf/level0.h"

namespace stp::perf {

class Level0Ping {
 public:
  Level0Ping(const Plan& plan, Level0Connection connection);

  // For the client: sends a Block and waits for the answer.
  void round_trip();
  // For the server: answers a Block, if one has come. Returns whether it has.
  bool answer();

 private:
  void send();
  // False: nothing has come yet.
  bool receive();

  const Plan plan_;
  Level0Connection connection_;
};

}  // namespace stp::perf
