// SPDX-License-Identifier: BSD-3-Clause
// The tests over the managed API: operations there and back, and a window of them.
#pragma once

#include <atomic>
#include <functional>
#include <stp/managed.hpp>
#include <vector>

#include "tools/perf/room.h"

namespace stp::perf {

// A ping-pong over the managed API: one operation there and one back, for both sides.
class Ping {
 public:
  // `others`: handles the events that do not belong to the ping-pong.
  using Others = std::function<void(const stm_event_t&)>;
  Ping(const Plan& plan, const Room& room, const stm_remote_t& peer, stm_connection_t connection,
       Others others);

  static constexpr std::uint64_t kContext = 1;

  // For the client: begins an operation, and waits for the answer or the completion.
  void round_trip();
  // For the server: answers an operation, if one has come.
  void answer();

 private:
  void send();
  void land();
  void turn();
  [[nodiscard]] bool arrived();
  [[nodiscard]] std::atomic_ref<std::uint64_t> sequence_in(unsigned char* part) const;

  const Plan plan_;
  const Room& room_;
  const stm_remote_t peer_;
  stm_connection_t connection_;
  Others others_;
  Events events_;
  std::uint64_t sequence_ = 0;  // number of the last put that was sent
  std::uint64_t seen_ = 0;      // number of the last put that has arrived
  unsigned completions_ = 0;
};

// Keeps a window of operations outstanding on each connection, and serves those of the peer. Client
// and server have one each. In a bidirectional test both call start(), else only the client.
class Stream {
 public:
  // The connections have contexts made by context_of(), and outlive the Stream.
  Stream(const Plan& plan, const Room& room, const stm_remote_t& peer,
         std::vector<stm_connection_t> connections);

  // Tells the events of a connection, of its operations and of its receives apart.
  enum class Role : std::uint64_t { kConnection, kBegun, kLanding };
  static std::uint64_t context_of(std::size_t index, Role role) {
    return static_cast<std::uint64_t>(index) << 2 | static_cast<std::uint64_t>(role);
  }

  void start();
  void stop() { running_ = false; }
  [[nodiscard]] bool drained() const { return outstanding_ == 0; }
  void handle(const stm_event_t& event);
  // Posts again what could not be posted before (-EAGAIN).
  void retry();
  // Returns how many operations of this side are complete.
  [[nodiscard]] std::uint64_t operations() const { return done_; }

 private:
  struct ReadRequest {
    stm_connection_t connection;
    std::uint32_t number;
  };
  void begin(std::size_t index);
  int post(std::size_t index);
  void land(std::size_t index);
  void serve(const ReadRequest& request);

  const Plan plan_;
  const Room& room_;
  const stm_remote_t peer_;
  std::vector<stm_connection_t> connections_;
  std::vector<std::size_t> owed_;
  std::vector<ReadRequest> unserved_;
  bool running_ = false;
  std::uint64_t outstanding_ = 0, done_ = 0;
};

}  // namespace stp::perf
