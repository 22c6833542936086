// SPDX-License-Identifier: BSD-3-Clause
// One link of stpd from start to end. Owns the link, a Service and a polling thread for each of its
// shards, and a socket for clients with its thread. While the interface of the link is absent, it
// serves a Port that carries nothing. Only the main thread calls it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/stpd/link_shards.h"
#include "tools/stpd/options.h"
#include "tools/stpd/server.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::stpd {

// Traces that an administrator starts while stpd runs, one at a time. The administrator's program
// has opened the file, so stpd needs no permission for it. stpd never waits for the file. The
// Server's thread starts and stops traces; the polling threads pass in the frames.
class Tracer final : public TraceControl, private port::Tap {
 public:
  using Log = std::function<void(const std::string&)>;
  using IsOwn = std::function<bool(int file)>;

  // `beside`: another tap that also sees every frame; may be null. `is_own`: whether a file is one
  // that stpd has for something else.
  Tracer(LinkShards& shards, port::Tap* beside, IsOwn is_own, Log log);
  ~Tracer() override;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // -EBUSY: a trace is running, or the files of too many traces still block. -ETXTBSY: stpd has the
  // file for something else. Else it is emptied.
  int start(const ipc::TraceOrder& order, host::ClientId by, os::UniqueFd& file) override;
  int stop() override;
  int status(ipc::TraceState& out) override;
  void client_gone(host::ClientId client) override;

 private:
  void frame(Bytes head, Bytes rest, bool sent) override;
  bool has_let_go();

  LinkShards& shards_;
  port::Tap* const beside_;
  const IsOwn is_own_;
  const Log log_;
  std::unique_ptr<trace::PcapngWriter> writer_;  // the latest trace
  std::optional<trace::PcapngTap> tap_;          // into it
  unsigned lost_writers_ = 0;                    // writers left behind because their file blocks
  bool everything_ = false;
  bool running_ = false;
  host::ClientId owner_ = 0;  // the trace ends when this client goes; 0: it stays
};

class ServedLink {
 public:
  // Opens everything that needs privileges: link, socket, trace file. nullptr: `error` says what
  // failed; an interface, address or folder that may come is no failure. `own_files` outlives it.
  // `alone`: the log lines do not name the link.
  static std::unique_ptr<ServedLink> open(const LinkOptions& link, const Options& options,
                                          const OwnFiles& own_files, bool alone,
                                          std::string& error);
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
  // Opens the link if what it waited for has come. Its programs are disconnected, for it is another
  // link than before. False: the link cannot be served any more, and `error` says why.
  bool look_for_what_was_missing(std::string& error);
  [[nodiscard]] bool is_absent() const { return absent_; }
  // Logs the state of the link, once per change, and its other problems.
  void log_state();
  [[nodiscard]] const std::string& name() const { return options_.name; }

 private:
  using Ports = std::vector<std::unique_ptr<port::Port>>;
  // What there is for as long as the Ports of the link.
  struct Parts {
    Parts(const LinkOptions& link, Ports ports, Server::Log log);
    const host::PollPlaces places;
    LinkShards shards;
    Server server;
    std::unique_ptr<Tracer> tracer;
    std::optional<Telemetry> telemetry;
  };

  ServedLink(const LinkOptions& link, const Options& options, const OwnFiles& own_files,
             bool alone);
  bool open_ports(Ports& ports, std::string& error);
  bool wait_for_what_is_missing(Ports& ports, std::string& error);
  void make_parts(Ports ports);
  void end_parts();
  bool start_trace(std::string& error);
  host::LinkChange present_state();
  void log_state(const host::LinkChange& change);
  bool find_admin_group(std::string& error);
  void add_admin();
  bool listen(std::string& error);
  bool start(std::string& error);
  void log_link();
  void log_shards();
  void warn_of_late_frames();
  void warn_of_lost_socket();
  [[nodiscard]] std::string trouble_of_trace() const;
  [[nodiscard]] std::string own_trouble() const;
  void warn_of_ended_trace();
  void finish_trace();
  void warn_of_pages() const;
  void wait_for_disconnects();
  void add_counters();
  [[nodiscard]] std::vector<port::PortCounter> own_counters();
  void log_counters();
  void log(LogLevel level, const std::string& text) const { stpd::log(level, text, log_name_); }
  [[nodiscard]] LinkShards& shards() { return parts_->shards; }

  const LinkOptions options_;
  Options common_;  // of all links
  const OwnFiles& own_files_;
  const std::string log_name_;
  std::optional<gid_t> admin_group_;
  std::unique_ptr<trace::PcapngWriter> trace_;
  std::optional<trace::PcapngTap> tap_;
  std::unique_ptr<Parts> parts_;
  std::size_t links_ = 1;  // that are served together
  bool absent_ = false, serving_ = false, warned_of_trace_ = false;
  std::atomic<bool> socket_lost_{false};
  std::string obstacle_;  // why a link did not open though nothing is missing any more
  std::uint64_t seen_requests_ = 0;
  std::string logged_ = "up";  // the state and the trouble that were logged last
};

}  // namespace stp::stpd
