// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/telemetry.h"

#include <mutex>

#include "libst/service/names.h"

namespace stp::service {

std::string Telemetry::name() {
  return shards_.first().port().info().link;
}

port::TelemetryRow Telemetry::link() {
  const std::uint64_t connections = shards_.connections();
  auto& service = shards_.first();
  std::lock_guard guard(service.lock());
  const auto& info = service.port().info();
  return {{"link", info.link},
          {"device", info.device},
          {"driver", info.driver},
          {"mac", port::to_string(info.mac)},
          {"mtu", std::uint64_t{info.mtu}},
          {"state", std::string(port::name_of(service.port().state()))},
          {"up", std::uint64_t{service.port().link_up()}},
          {"shards", std::uint64_t{shards_.count()}},
          {"clients", std::uint64_t{service.client_count()}},
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
    std::lock_guard guard(service->lock());
    VcInfo info{};
    while (ports.size() < at_most) {
      const auto vc = service->node().vc_after(info.local_port);
      if (vc == kNoneId || service->node().vc_info(vc, info) != 0) break;
      ports.push_back(info.local_port);
    }
  }
  return ports;
}

std::optional<port::TelemetryRow> Telemetry::connection(std::uint16_t local_port) {
  if (local_port == 0) return std::nullopt;
  auto& service = shards_.at(local_port % shards_.count());
  std::lock_guard guard(service.lock());
  const auto vc = service.node().vc_after(static_cast<std::uint16_t>(local_port - 1));
  VcInfo info{};
  if (vc == kNoneId || service.node().vc_info(vc, info) != 0 || info.local_port != local_port)
    return std::nullopt;
  return port::TelemetryRow{{"state", std::string(name_of(info.state))},
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

}  // namespace stp::service
