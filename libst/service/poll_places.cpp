// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/poll_places.h"

namespace stp::service {
namespace {

std::string note(unsigned shards, std::size_t count, bool busy) {
  return std::to_string(shards) + " shards share " + std::to_string(count) +
         (count == 1 ? " CPU" : " CPUs") + ": their threads take turns" +
         (busy ? ", and poll=busy behaves as adaptive" : "") +
         "; set a smaller queues=, or give stpd more CPUs (--cpus)";
}

}  // namespace

PollPlaces poll_places(PollPolicy policy, unsigned shards, const std::vector<unsigned>& cpus,
                       unsigned usable) {
  PollPlaces places{.policy = policy, .cpus = {}, .crowded = false, .note = {}};
  if (shards == 1) {
    places.cpus.push_back(cpus);
    return places;
  }
  for (unsigned shard = 0; shard < shards; ++shard) {
    auto& own = places.cpus.emplace_back();
    if (!cpus.empty()) own.push_back(cpus[shard % cpus.size()]);
  }
  const std::size_t count = cpus.empty() ? usable : cpus.size();
  places.crowded = shards > count;
  if (!places.crowded) return places;
  const bool busy = policy == PollPolicy::kBusy;
  if (busy) places.policy = PollPolicy::kAdaptive;
  places.note = note(shards, count, busy);
  return places;
}

}  // namespace stp::service
