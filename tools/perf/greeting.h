// SPDX-License-Identifier: BSD-3-Clause
// The private data that client and server exchange while they connect.
#pragma once

#include <array>
#include <optional>
#include <stp/managed.hpp>

#include "tools/perf/plan.h"

namespace stp::perf {

// Sent on the control connection: the test, and the client's memory. Other connections send
// nothing.
struct Greeting {
  Plan plan;
  stm_remote_t remote{};

  static constexpr std::size_t kSize = kPlanSize + STM_REMOTE_SIZE;
  [[nodiscard]] std::array<unsigned char, kSize> encoded() const;
  // nullopt: the peer is another program, or another version of this one.
  static std::optional<Greeting> of(stm_connection_t connection);
};

// The server's answer names its memory. nullopt: the peer has not sent one.
std::array<unsigned char, STM_REMOTE_SIZE> encoded(const stm_remote_t& remote);
std::optional<stm_remote_t> remote_of(stm_connection_t connection);

}  // namespace stp::perf
