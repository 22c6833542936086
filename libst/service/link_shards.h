// SPDX-License-Identifier: BSD-3-Clause
// A link that a daemon serves: a Service with a polling thread for each of its shards, and one set
// of budgets for all of them. The shards begin and end together, since each may hold frames of
// another, and all send by way of the first one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dpdk_port/port.h"
#include "libst/service/poll_loop.h"
#include "libst/service/poll_places.h"
#include "libst/service/service.h"

namespace stp::service {

class LinkShards {
 public:
  // `ports`: all shards of one link, in order. `places`: of as many threads. `granted`: as of
  // Service.
  LinkShards(std::vector<std::unique_ptr<port::Port>> ports, const PollPlaces& places,
             std::optional<std::uint64_t> granted = std::nullopt);
  ~LinkShards();
  LinkShards(const LinkShards&) = delete;
  LinkShards& operator=(const LinkShards&) = delete;

  void start();
  // Stops the threads; what the shards have to send leaves before. May be called again.
  void stop();
  // Whether each thread has made a turn since the last call.
  bool are_alive();

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(shards_.size()); }
  [[nodiscard]] Service& first() { return shards_.front()->service; }
  [[nodiscard]] Service& at(unsigned shard) { return shards_[shard]->service; }
  [[nodiscard]] std::vector<Service*> services();
  // Connections of all of them.
  [[nodiscard]] std::size_t connections();
  // The sums by name, in the order of the first shard's.
  [[nodiscard]] std::vector<port::PortCounter> counters();
  // Applied to each, under its lock.
  void set_quotas(const Quotas& quotas);
  void set_port_rules(const PortRules& rules);
  // The tap is called by the threads of all shards.
  void set_tap(port::Tap* tap);

 private:
  struct Shard {
    Shard(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
          std::shared_ptr<Budgets> budgets, PollPolicy policy, std::vector<unsigned> cpus,
          bool crowded)
        : service(std::move(port), granted, std::move(budgets)),
          loop(service, policy, std::move(cpus), crowded) {}
    Service service;
    PollLoop loop;
    std::uint64_t seen_turns = 0;
  };
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace stp::service
