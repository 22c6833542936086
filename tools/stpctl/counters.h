// SPDX-License-Identifier: BSD-3-Clause
// Counters: what each means, and all of them in the text exposition format of Prometheus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/stpctl/snapshot.h"

namespace stp::stpctl {

// All that there are. Each link has some of them.
std::vector<std::string_view> names_of_counters();
// The counter of this name, which may be that of its metric (stp_bad_key_total). "": there is none.
std::string_view counter_named(std::string_view name);
// What may have been meant. "": nobody knows.
std::string_view similar_counter(std::string_view name);
// A short description of the counter, or "" if this version does not know it.
std::string_view text_of_counter(std::string_view name);
// Returns whether the counter counts dropped frames.
bool counts_drops(std::string_view name);

// Counters in the text exposition format of Prometheus.
struct LinkCounters {
  LinkReport link;
  std::vector<CounterValue> counters;
  std::vector<User> users{};  // those that this user may see
};

// Groups all samples of a metric, as the format requires. A label names the link of each sample.
std::string prometheus_counters(const std::vector<LinkCounters>& links);
// The same, and what else there is of the links, their users and shards.
std::string prometheus_text(const std::vector<LinkCounters>& links);

}  // namespace stp::stpctl
