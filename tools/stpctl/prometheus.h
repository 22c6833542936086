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
  std::vector<User> users{};  // whom this user may see
};

// All samples of a metric stand together, as the format wants it, links being told apart by a
// label.
std::string prometheus_text(const std::vector<LinkCounters>& links);

}  // namespace stp::stpctl
