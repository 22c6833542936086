// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/link_shards.h"

#include <algorithm>
#include <utility>

#include "libst/ipc/requests.h"
#include "stp/base/assert.h"

namespace stp::stpd {

LinkShards::LinkShards(std::vector<std::unique_ptr<port::Port>> ports,
                       const host::PollPlaces& places, std::optional<std::uint64_t> granted,
                       const std::shared_ptr<host::Budgets>& budgets) {
  STP_ASSERT(!ports.empty() && ports.size() == places.cpus.size(),
             "a link has a shard, and each shard a place for its thread");
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
    (*shard)->service.drive()->poll();
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

std::vector<host::Service*> LinkShards::services() {
  std::vector<host::Service*> all;
  for (const auto& shard : shards_) all.push_back(&shard->service);
  return all;
}

std::size_t LinkShards::connections() {
  std::size_t sum = 0;
  for (const auto& shard : shards_) sum += shard->service.drive()->node().vc_count();
  return sum;
}

std::vector<port::PortCounter> LinkShards::counters() {
  std::vector<port::PortCounter> sums;
  for (const auto& shard : shards_) {
    auto own = shard->service.drive()->all_counters();
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

void LinkShards::set_quotas(const host::Quotas& quotas) {
  for (const auto& shard : shards_) shard->service.drive()->set_quotas(quotas);
}

void LinkShards::set_port_rules(const host::PortRules& rules) {
  for (const auto& shard : shards_) shard->service.drive()->set_port_rules(rules);
}

void LinkShards::set_tap(port::Tap* tap) {
  for (const auto& shard : shards_) shard->service.drive()->port().set_tap(tap);
}

std::string Telemetry::name() {
  return shards_.first().info().link;
}

port::TelemetryRow Telemetry::link() {
  const std::uint64_t connections = shards_.connections();
  auto& service = shards_.first();
  const auto& info = service.info();
  const auto turn = service.drive();
  return {{"link", info.link},
          {"device", info.device},
          {"driver", info.driver},
          {"mac", port::to_string(info.mac)},
          {"mtu", std::uint64_t{info.mtu}},
          {"state", std::string(port::name_of(turn->port().state()))},
          {"up", std::uint64_t{turn->port().link_up()}},
          {"shards", std::uint64_t{shards_.count()}},
          {"clients", std::uint64_t{turn->client_count()}},
          {"connections", connections}};
}

port::TelemetryRow Telemetry::stats() {
  port::TelemetryRow row;
  for (auto& counter : shards_.counters()) row.push_back({counter.name, counter.value});
  return row;
}

// Lists shard by shard. A list that is cut at `at_most` lacks connections of the last shards.
std::vector<std::uint16_t> Telemetry::connections(std::size_t at_most) {
  std::vector<std::uint16_t> ports;
  for (auto* const service : shards_.services()) {
    const auto turn = service->drive();
    VcInfo info{};
    while (ports.size() < at_most) {
      const auto vc = turn->node().vc_after(info.local_port);
      if (vc == kNoneId || turn->node().vc_info(vc, info) != 0) break;
      ports.push_back(info.local_port);
    }
  }
  return ports;
}

std::optional<port::TelemetryRow> Telemetry::connection(std::uint16_t local_port) {
  if (local_port == 0) return std::nullopt;
  const auto turn = shards_.at(local_port % shards_.count()).drive();
  const auto vc = turn->node().vc_after(static_cast<std::uint16_t>(local_port - 1));
  VcInfo info{};
  if (vc == kNoneId || turn->node().vc_info(vc, info) != 0 || info.local_port != local_port)
    return std::nullopt;
  return port::TelemetryRow{{"state", std::string(ipc::name_of(info.state))},
                            {"uport", std::uint64_t{info.uport}},
                            {"local_port", std::uint64_t{info.local_port}},
                            {"peer_mac", port::to_string(info.peer_mac)},
                            {"peer_port", std::uint64_t{info.remote_port}},
                            {"slots", std::uint64_t{info.local_slots}},
                            {"credit", std::uint64_t{info.credit}},
                            {"round_trip_ns", info.round_trip},
                            {"rx_control", info.traffic.rx_control},
                            {"rx_data_bytes", info.traffic.rx_data_bytes},
                            {"tx_control", info.traffic.tx_control},
                            {"tx_data_bytes", info.traffic.tx_data_bytes}};
}

}  // namespace stp::stpd
