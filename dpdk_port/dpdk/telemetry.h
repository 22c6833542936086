// SPDX-License-Identifier: BSD-3-Clause
// What a link tells through DPDK's telemetry socket. Free of DPDK types, as all headers here.
//   /stp/links                      -> ["iface:eth0", ...]; their places are the numbers below
//   /stp/link[,LINK]                -> the link
//   /stp/stats[,LINK]               -> all counters by name
//   /stp/connections[,LINK]         -> local Ports of its connections; the first 512
//   /stp/connection,PORT[,LINK]     -> that connection
// LINK is 0 where it is left out.
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

// Asked from a thread of DPDK's.
class TelemetrySource {
 public:
  virtual ~TelemetrySource() = default;
  virtual std::string name() = 0;
  virtual TelemetryRow link() = 0;
  virtual TelemetryRow stats() = 0;
  virtual std::vector<std::uint16_t> connections(std::size_t at_most) = 0;
  virtual std::optional<TelemetryRow> connection(std::uint16_t local_port) = 0;
};

// The socket is there while a source is published, or shortly before, if this was called before
// the process opened its first link that is a DPDK device. Programs that embed a Node do not call
// it: what their process shows to others is theirs to choose.
void enable_telemetry();
// "": there is none.
std::string telemetry_socket();

// The source is asked for as long as this lives, and not any more when it has gone.
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
