// SPDX-License-Identifier: BSD-3-Clause
// One link of stpd from start to end. Owns the link, a Service and a polling thread for each of its
// shards, and a socket for clients with its thread. Only the main thread calls it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "libst/service/link_shards.h"
#include "libst/service/server.h"
#include "libst/service/telemetry.h"
#include "tools/stpd/options.h"
#include "tools/stpd/tracer.h"
#include "tools/trace/pcapng_tap.h"

namespace stp::stpd {

class ServedLink {
 public:
  // Opens everything that needs privileges: link, socket, trace file. nullptr: `error` says what
  // failed. `alone`: the log lines do not name the link.
  static std::unique_ptr<ServedLink> open(const LinkOptions& link, const Options& options,
                                          bool alone, std::string& error);
  // Ends the connections on the wire, then everything else; logs the counters.
  ~ServedLink();
  ServedLink(const ServedLink&) = delete;
  ServedLink& operator=(const ServedLink&) = delete;

  // Starts the threads. False: `error` says why not.
  bool serve(std::size_t links, std::string& error);
  // Applies settings that may change at run time: quotas, `listen` rules.
  void apply(const Options& options);
  // Accepts no more clients and disconnects those there are. The destructor waits for the peers.
  void begin_to_leave();
  // Returns whether all threads have made progress since the last call.
  bool is_alive();
  // Logs the state of the link, once per change, and its other problems.
  void log_state();
  [[nodiscard]] const std::string& name() const { return options_.name; }

 private:
  ServedLink(const LinkOptions& link, bool alone, std::vector<std::unique_ptr<port::Port>> ports);
  bool start_trace(std::string& error);
  void log_state(const service::LinkChange& change);
  bool start_admin(const Options& options, std::string& error);
  bool listen(const Options& options, std::string& error);
  void log_link();
  void log_shards();
  void warn_of_late_frames();
  void warn_of_pages() const;
  void wait_for_disconnects();
  void add_counters();
  [[nodiscard]] std::vector<port::PortCounter> own_counters();
  void log_counters();
  void log(LogLevel level, const std::string& text) const { stpd::log(level, text, log_name_); }

  const LinkOptions options_;
  const std::string log_name_;
  std::unique_ptr<trace::PcapngWriter> trace_;
  std::optional<trace::PcapngTap> tap_;
  const service::PollPlaces places_;
  service::LinkShards shards_;
  service::Server server_;
  std::unique_ptr<Tracer> tracer_;
  std::optional<service::Telemetry> telemetry_;
  bool serving_ = false;
  std::uint64_t seen_requests_ = 0;
  std::string logged_ = "up";  // the state and the trouble that were logged last
};

}  // namespace stp::stpd
