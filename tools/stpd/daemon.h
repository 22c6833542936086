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
