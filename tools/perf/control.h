// SPDX-License-Identifier: BSD-3-Clause
// The control connection of client and server: when the measurement starts and ends, and the
// server's report.
#pragma once

#include <optional>
#include <stp/managed.hpp>

#include "tools/perf/room.h"
#include "tools/perf/usage.h"

namespace stp::perf {

enum class Note : std::uint32_t { kBegin = 1, kEnd, kReport };

struct ServerReport {
  std::uint64_t operations = 0;  // that the server began: bidirectional tests
  Usage usage;
};

class Control {
 public:
  // The context of its connection and operations; no Stream uses this value.
  static constexpr std::uint64_t kContext = ~std::uint64_t{0};

  // `connection` has kContext, and is connected or accepted.
  Control(const Room& room, stm_connection_t connection);

  void send(Note note);
  void send(const ServerReport& report);
  // Whether the event belongs to this connection; if so, takes the peer's message in it, if any.
  bool handle(const stm_event_t& event);
  [[nodiscard]] std::optional<Note> take();
  [[nodiscard]] const ServerReport& report() const { return report_; }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  void expect();
  void send(Note note, std::size_t length);

  const Room& room_;
  stm_connection_t connection_;
  std::optional<Note> note_;
  ServerReport report_;
  bool ended_ = false;
};

}  // namespace stp::perf
