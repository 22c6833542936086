// SPDX-License-Identifier: BSD-3-Clause
// Where the polling threads of a link's shards run, and whether each has a CPU of its own.
#pragma once

#include <string>
#include <vector>

#include "libst/service/poll_loop.h"

namespace stp::service {

struct PollPlaces {
  PollPolicy policy = PollPolicy::kAdaptive;
  std::vector<std::vector<unsigned>> cpus;  // of each shard; none: any
  bool crowded = false;                     // fewer CPUs than threads
  std::string note;                         // for the operator, if crowded; "": nothing
};

// `cpus`: those that an operator chose; none: any of the `usable` ones of this process. One shard
// has all of them. Of several shards each has one, in turn. kBusy becomes kAdaptive where threads
// have to share a CPU: one that never sleeps would keep it from another.
PollPlaces poll_places(PollPolicy policy, unsigned shards, const std::vector<unsigned>& cpus,
                       unsigned usable);

}  // namespace stp::service
