// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/link_shards.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {

LinkShards::LinkShards(std::vector<std::unique_ptr<port::Port>> ports, const PollPlaces& places,
                       std::optional<std::uint64_t> granted) {
  STP_ASSERT(!ports.empty() && ports.size() == places.cpus.size(),
             "a link has a shard, and each shard a place for its thread");
  const auto budgets = std::make_shared<Budgets>();
  for (std::size_t i = 0; i < ports.size(); ++i)
    shards_.push_back(std::make_unique<Shard>(std::move(ports[i]), granted, budgets, places.policy,
                                              places.cpus[i], places.crowded));
}

LinkShards::~LinkShards() {
  stop();
  while (!shards_.empty()) shards_.pop_back();
}

void LinkShards::start() {
  for (const auto& shard : shards_) shard->loop.start();
}

// The first shard stops last, because the frames of the others leave through it. The turn after its
// thread has stopped sends what the thread's last turn has received.
void LinkShards::stop() {
  for (auto shard = shards_.rbegin(); shard != shards_.rend(); ++shard) {
    (*shard)->loop.stop();
    std::lock_guard const guard((*shard)->service.lock());
    (*shard)->service.poll();
  }
}

bool LinkShards::are_alive() {
  bool alive = true;
  for (const auto& shard : shards_) {
    const auto turns = shard->loop.heartbeat().beats();
    alive &= std::exchange(shard->seen_turns, turns) != turns;
  }
  return alive;
}

std::vector<Service*> LinkShards::services() {
  std::vector<Service*> all;
  for (const auto& shard : shards_) all.push_back(&shard->service);
  return all;
}

std::size_t LinkShards::connections() {
  std::size_t sum = 0;
  for (const auto& shard : shards_) {
    std::lock_guard const guard(shard->service.lock());
    sum += shard->service.node().vc_count();
  }
  return sum;
}

std::vector<port::PortCounter> LinkShards::counters() {
  std::vector<port::PortCounter> sums;
  for (const auto& shard : shards_) {
    std::vector<port::PortCounter> own;
    {
      std::lock_guard const guard(shard->service.lock());
      own = shard->service.all_counters();
    }
    for (auto& counter : own) {
      const auto known = std::ranges::find(sums, counter.name, &port::PortCounter::name);
      if (known == sums.end())
        sums.push_back(std::move(counter));
      else
        known->value += counter.value;
    }
  }
  return sums;
}

void LinkShards::set_quotas(const Quotas& quotas) {
  for (const auto& shard : shards_) {
    std::lock_guard const guard(shard->service.lock());
    shard->service.set_quotas(quotas);
  }
}

void LinkShards::set_port_rules(const PortRules& rules) {
  for (const auto& shard : shards_) {
    std::lock_guard const guard(shard->service.lock());
    shard->service.set_port_rules(rules);
  }
}

void LinkShards::set_tap(port::Tap* tap) {
  for (const auto& shard : shards_) {
    std::lock_guard const guard(shard->service.lock());
    shard->service.port().set_tap(tap);
  }
}

}  // namespace stp::service
