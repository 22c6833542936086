// SPDX-License-Identifier: BSD-3-Clause
// stpd from its start to its end: a link, a Service that is polled, a socket for clients.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "libst/service/poll_loop.h"
#include "libst/service/server.h"
#include "libst/service/telemetry.h"
#include "tools/stpd/options.h"
#include "tools/stpd/tracer.h"
#include "tools/trace/pcapng_tap.h"

namespace stp::stpd {

class Daemon {
 public:
  // nullptr: `error` says what could not be had.
  static std::unique_ptr<Daemon> start(const Options& options, std::string& error);
  // Ends connections on the wire, then everything else; logs what was counted.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

 private:
  Daemon(const Options& options, std::unique_ptr<port::Port> port);
  bool start_trace(const Options& options, std::string& error);
  bool start_admin(const Options& options, std::string& error);
  void log_link(const Options& options);
  void wait_for_disconnects();
  [[nodiscard]] std::vector<port::PortCounter> own_counters() const;
  void log_counters();

  std::unique_ptr<trace::PcapngWriter> trace_;
  std::optional<trace::PcapngTap> tap_;
  service::Service service_;
  service::PollLoop loop_;
  service::Server server_;
  std::unique_ptr<Tracer> tracer_;
  std::optional<service::Telemetry> telemetry_;
  bool serving_ = false;
};

}  // namespace stp::stpd
