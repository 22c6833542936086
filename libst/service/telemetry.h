// SPDX-License-Identifier: BSD-3-Clause
// Publishes a link in DPDK's telemetry, with the sums over its shards. DPDK's telemetry threads
// call the private functions, which take the locks of the Services.
#pragma once

#include "dpdk_port/dpdk/telemetry.h"
#include "libst/service/link_shards.h"

namespace stp::service {

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

}  // namespace stp::service
