// SPDX-License-Identifier: BSD-3-Clause
// stpd as a whole: owns its links, and does what concerns all of them. Only the main thread calls
// it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/stpd/log.h"
#include "tools/stpd/served_link.h"

namespace stp::stpd {

// Privileges that stpd needs to open links and sockets, but not to serve programs.
struct Rights {
  std::string user;   // to switch to; "": unchanged
  std::string group;  // "": the user's primary group
  // A link of af_xdp has entered promiscuous mode and must leave it at the end.
  bool keep_net_admin = false;
};

// Switches to that user and group, without supplementary groups (a process that has both already
// keeps them). Then drops all capabilities of the calling thread except those named. Call it before
// threads start that serve clients, because capabilities belong to threads. A process of root that
// stays root keeps everything. False: `error` says what is wrong.
bool drop_rights(const Rights& rights, std::string& error);

class Daemon {
 public:
  // Logs each link that cannot be opened, and serves the others. nullptr: no link is left, or the
  // process could not drop its privileges. Threads that serve clients start without privileges.
  static std::unique_ptr<Daemon> start(const Options& options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Applies quotas and `listen` rules to all links.
  void apply(const Options& options);
  // Returns false if a thread has made no progress since the last call.
  bool is_alive();
  // Logs changes of the links' states since the last call, and their trouble. Opens links whose
  // interface has come. False: one of them cannot be served.
  bool look_at_links();
  // "2 links", "1 of 2 links: b", or "2 links, 1 of them waiting for what is missing"
  [[nodiscard]] std::string status() const;

 private:
  Daemon() = default;
  void open_links(const Options& options);
  bool serve();

  std::optional<LogThread> log_thread_;  // destroyed last
  std::size_t wanted_ = 0;
  std::vector<std::unique_ptr<ServedLink>> links_;
};

}  // namespace stp::stpd
