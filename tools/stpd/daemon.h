// SPDX-License-Identifier: BSD-3-Clause
// stpd as a whole: its links, and what is about all of them.
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
  // A link that cannot be had is logged, and the others are served; nullptr when there is none
  // left, or when rights could not be given up. Threads that face clients start without rights.
  static std::unique_ptr<Daemon> start(const Options& options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void apply(const Options& options);
  // False: some thread has stopped moving since this was last asked.
  bool is_alive();
  // Logs which links have come into trouble since this was last called, or got out of it.
  void look_at_links();
  // "2 links" or "1 of 2 links: b"
  [[nodiscard]] std::string status() const;

 private:
  Daemon() = default;
  void open_links(const Options& options);
  bool serve();

  std::optional<LogThread> log_thread_;  // goes last
  std::size_t wanted_ = 0;
  std::vector<std::unique_ptr<ServedLink>> links_;
};

}  // namespace stp::stpd
