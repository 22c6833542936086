// SPDX-License-Identifier: BSD-3-Clause
// Counters in the text exposition format of Prometheus.
#pragma once

#include <string>
#include <vector>

#include "tools/stpctl/snapshot.h"

namespace stp::stpctl {

struct LinkCounters {
  Link link;
  std::vector<CounterValue> counters;
  std::vector<User> users{};  // those that this user may see
};

// Groups all samples of a metric, as the format requires. A label names the link of each sample.
std::string prometheus_text(const std::vector<LinkCounters>& links);

}  // namespace stp::stpctl
