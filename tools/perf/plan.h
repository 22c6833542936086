// SPDX-License-Identifier: BSD-3-Clause
// What is measured. The client decides, and tells the server when it connects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stp/managed.hpp>
#include <string>
#include <string_view>

namespace stp::perf {

enum class Test : std::uint8_t { kLatency, kStream };
// kWrite is a message: stm_send puts short ones into the peer's ring and writes the others.
enum class Operation : std::uint8_t { kPut, kGet, kWrite, kRead, kFetch, kLevel0 };

struct Plan {
  Test test = Test::kLatency;
  Operation operation = Operation::kPut;
  bool bidirectional = false;
  bool crowded = false;  // there are more pollers than cores (see Events); not sent to the peer
  bool sleeps = false;   // waits for events in the kernel instead of polling for them
  std::uint64_t size = 8;
  std::uint32_t window = 1;       // operations outstanding on each connection
  std::uint32_t connections = 1;  // those that carry the operations
};

inline constexpr std::size_t kPlanSize = 20;
void encode(const Plan& plan, std::span<unsigned char, kPlanSize> out);
// nullopt: not a Plan of this version, or it exceeds the limits below.
std::optional<Plan> decode_plan(std::span<const unsigned char, kPlanSize> bytes);

inline constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kMostOutstanding = 4096;           // on a connection
inline constexpr std::size_t kMostEvents = std::size_t{1} << 20;  // in a queue: libst's limit
inline constexpr std::uint16_t kMostLevel0Blocks = 1024;          // in a region
inline constexpr std::uint32_t kMostConnections = 60'000;
// The last bytes of each put of a ping-pong hold a sequence number.
inline constexpr std::uint64_t kSmallestPing = 8;

const char* name_of(Operation operation);
std::optional<Operation> operation_named(std::string_view name);
std::string operations();  // the names of all, a blank before each
// Returns how many events a side's queue must hold: for its operations, for its posted receives,
// and for each connection itself.
std::size_t places_for_events(const Plan& plan);
// Returns why this test cannot be run; "" if it can.
std::string complaint(const Plan& plan);

// The private data that client and server exchange while they connect.
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

// What a server says along when it rejects a client whose turn did not come: which station it
// serves instead, and for how long.
struct Busy {
  std::string station;  // its first bytes
  std::uint32_t seconds = 0;

  static constexpr std::size_t kMostOfStation = 128;
  [[nodiscard]] std::string encoded() const;
  static std::optional<Busy> of(stm_connection_t connection);
};

// The server's answer names its memory. nullopt: the peer has not sent one.
std::array<unsigned char, STM_REMOTE_SIZE> encoded(const stm_remote_t& remote);
std::optional<stm_remote_t> remote_of(stm_connection_t connection);

}  // namespace stp::perf
