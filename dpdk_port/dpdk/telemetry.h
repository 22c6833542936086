// SPDX-License-Identifier: BSD-3-Clause
// Publishes a link on DPDK's telemetry socket. Free of DPDK types, like all headers here.
//   /stp/links                      -> ["iface:eth0", ...]; their places are the numbers below
//   /stp/link[,LINK]                -> the link
//   /stp/stats[,LINK]               -> all counters by name
//   /stp/connections[,LINK]         -> local Ports of its connections; the first 512
//   /stp/connection,PORT[,LINK]     -> that connection
// LINK defaults to 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace stp::port {

struct TelemetryValue {
  std::string name;
  std::variant<std::uint64_t, std::string> value;
};
using TelemetryRow = std::vector<TelemetryValue>;

// DPDK calls it on a thread of its own.
class TelemetrySource {
 public:
  virtual ~TelemetrySource() = default;
  virtual std::string name() = 0;
  virtual TelemetryRow link() = 0;
  virtual TelemetryRow stats() = 0;
  virtual std::vector<std::uint16_t> connections(std::size_t at_most) = 0;
  virtual std::optional<TelemetryRow> connection(std::uint16_t local_port) = 0;
};

// Opens the telemetry socket while a source is published, or shortly before. Call before the
// process opens its first link on a DPDK device. Programs that embed a Node do not call it: they
// decide what their process publishes.
void enable_telemetry();
// "": none.
std::string telemetry_socket();
// Why there is none though it was enabled, and DPDK runs; "": there is one, or none is to be.
std::string telemetry_trouble();

// Publishes a source while this object lives. After destruction the source is not called any more.
class PublishedSource {
 public:
  explicit PublishedSource(TelemetrySource& source);
  ~PublishedSource();
  PublishedSource(const PublishedSource&) = delete;
  PublishedSource& operator=(const PublishedSource&) = delete;

 private:
  TelemetrySource& source_;
};

}  // namespace stp::port
