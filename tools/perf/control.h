// SPDX-License-Identifier: BSD-3-Clause
// The control connection of client and server. The client says when the measurement begins and
// ends; the server sends its report.
#pragma once

#include <optional>
#include <stp/managed.hpp>

#include "tools/perf/measure.h"
#include "tools/perf/room.h"

namespace stp::perf {

enum class Note : std::uint32_t { kBegin = 1, kEnd, kReport };

struct ServerReport {
  std::uint64_t operations = 0;  // begun by the server, in bidirectional tests
  Side side;
};

class Control {
 public:
  // The context of the control connection and its operations; no Stream uses this value.
  static constexpr std::uint64_t kContext = ~std::uint64_t{0};

  // `connection` has the context kContext, and is connected or accepted.
  Control(const Room& room, stm_connection_t connection);

  void send(Note note);
  void send(const ServerReport& report);
  // Returns whether the event belongs to this connection. If so, keeps the peer's message, if any.
  bool handle(const stm_event_t& event);
  // Returns the peer's last message, once.
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
