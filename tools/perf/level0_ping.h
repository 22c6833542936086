// SPDX-License-Identifier: BSD-3-Clause
// A ping-pong at level 0: each side puts a Block into the other's memory by st_tx, and hears of it
// by the header that st_rx brings.
#pragma once

#include "tools/perf/level0.h"

namespace stp::perf {

class Level0Ping {
 public:
  Level0Ping(const Plan& plan, Level0Connection connection);

  // The client.
  void round_trip();
  // The server: answers what has come, if anything.
  bool answer();

 private:
  void send();
  // False: nothing has come yet.
  bool receive();

  const Plan plan_;
  Level0Connection connection_;
};

}  // namespace stp::perf
