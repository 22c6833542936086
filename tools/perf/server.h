// SPDX-License-Identifier: BSD-3-Clause
// Whoever is measured against: does what its clients ask for, one client at a time.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tools/perf/room.h"
#include "tools/perf/usage.h"

namespace stp::perf {

struct Serving {
  Setup setup;
  std::string port = ":3000";
  bool once = false;                               // ends after the first client
  std::function<void()> listening;                 // called when clients may come
  std::function<void(const std::string&)> mishap;  // a client's test has failed; the next may come
};

// Until `stop`, or after the first client.
void run_server(const Serving& serving, const UsageMeter& usage, const std::atomic<bool>& stop);

}  // namespace stp::perf
