// SPDX-License-Identifier: BSD-3-Clause
// A link that a daemon serves: a Service with a polling thread for each of its shards, and one set
// of budgets for all of them. The shards begin and end together, since each may hold frames of
// another, and the first one looks after the device, and sends for those without a queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dpdk_port/dpdk/telemetry.h"
#include "dpdk_port/port.h"
#include "libst/host/poll_loop.h"
#include "libst/host/service.h"

namespace stp::stpd {

class LinkShards {
 public:
  // `ports`: all shards of one link, in order. `places`: where their threads run, with an entry of
  // `cpus` for each shard. `granted`: as for Service. `budgets`: of the link's users.
  LinkShards(std::vector<std::unique_ptr<port::Port>> ports, const host::PollPlaces& places,
             std::optional<std::uint64_t> granted = std::nullopt,
             const std::shared_ptr<host::Budgets>& budgets = std::make_shared<host::Budgets>());
  ~LinkShards();
  LinkShards(const LinkShards&) = delete;
  LinkShards& operator=(const LinkShards&) = delete;

  void start();
  // Stops the threads, that of the first shard last. Each shard makes one more turn after its
  // thread has stopped, so that frames which it has just received are sent on. May be called again.
  void stop();
  // Returns whether every polling thread has made progress since the last call. Call from one
  // thread.
  bool are_alive();

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(shards_.size()); }
  [[nodiscard]] host::Service& first() { return shards_.front()->service; }
  [[nodiscard]] host::Service& at(unsigned shard) { return shards_[shard]->service; }
  [[nodiscard]] std::vector<host::Service*> services();
  // Returns the number of connections of all shards.
  [[nodiscard]] std::size_t connections();
  // Returns the counters of all shards, added up by name. The first shard's order, then those that
  // only other shards have.
  [[nodiscard]] std::vector<port::PortCounter> counters();
  // These apply to all shards, one after the other, each under its lock.
  void set_quotas(const host::Quotas& quotas);
  void set_port_rules(const host::PortRules& rules);
  // The tap is called by the threads of all shards.
  void set_tap(port::Tap* tap);

 private:
  struct Shard {
    Shard(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
          std::shared_ptr<host::Budgets> budgets, host::PollPolicy policy,
          std::vector<unsigned> cpus, bool crowded)
        : service(std::move(port), granted, std::move(budgets)),
          loop(service, policy, std::move(cpus), crowded) {}
    host::Service service;
    host::PollLoop loop;
    std::uint64_t seen_turns = 0;
  };
  std::vector<std::unique_ptr<Shard>> shards_;
};

// Publishes a link in DPDK's telemetry, with the sums over its shards. DPDK's telemetry threads
// call the private functions, which take the locks of the Services.
class Telemetry final : private port::TelemetrySource {
 public:
  explicit Telemetry(LinkShards& shards) : shards_(shards), published_(*this) {}

 private:
  std::string name() override;
  port::TelemetryRow link() override;
  port::TelemetryRow stats() override;
  std::vector<std::uint16_t> connections(std::size_t at_most) override;
  std::optional<port::TelemetryRow> connection(std::uint16_t local_port) override;

  LinkShards& shards_;
  const port::PublishedSource published_;
};

}  // namespace stp::stpd
