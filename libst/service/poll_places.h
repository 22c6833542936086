// SPDX-License-Identifier: BSD-3-Clause
// Where the polling threads of a link's shards run, and whether each has a CPU of its own.
#pragma once

#include <string>
#include <vector>

#include "libst/service/poll_loop.h"

namespace stp::service {

struct PollPlaces {
  PollPolicy policy = PollPolicy::kAdaptive;
  std::vector<std::vector<unsigned>> cpus;  // for each shard; an empty one: any CPU
  bool crowded = false;                     // there are fewer CPUs than threads
  std::string note;                         // a warning for the operator, if crowded; else ""
};

// `cpus`: the CPUs that the operator has chosen; none: any of the `usable` ones. A single shard may
// use all of them. Of several shards each gets one, in turn. If threads have to share a CPU, kBusy
// becomes kAdaptive: a thread that never sleeps would keep the CPU from another one.
PollPlaces poll_places(PollPolicy policy, unsigned shards, const std::vector<unsigned>& cpus,
                       unsigned usable);

}  // namespace stp::service
