// SPDX-License-Identifier: BSD-3-Clause
// What happens on a link in a second: the difference of two looks at its daemon.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tools/stpctl/snapshot.h"

namespace stp::stpctl {

struct Look {
  std::chrono::steady_clock::time_point time;
  Link link;
  std::map<std::string, CounterValue> counters;
  std::vector<Connection> connections;
};

// Throws Failure.
Look look_at(DaemonClient& daemon);

struct BusyConnection {
  const Connection* connection;        // of the later Look
  double rx_bytes, tx_bytes, control;  // per second
};

using CounterRates = std::map<std::string, double>;
// 0: there is no such counter.
double rate_of(const CounterRates& rates, const std::string& name);

struct Rates {
  double seconds;
  CounterRates counters;
  std::vector<CounterRates> shards;  // of each
  double drops = 0;
  std::vector<BusyConnection> connections;  // the busiest first
};

// `now` has to outlive the result.
Rates rates_between(const Look& before, const Look& now);

}  // namespace stp::stpctl
