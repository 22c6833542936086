// SPDX-License-Identifier: BSD-3-Clause
// A session: the two programs of one connection, and the checks of what they must see.
#pragma once

#include <string>

#include "tools/sim/arena.h"

namespace stp::sim {

// Each session has one long write.
struct Bulk {
  std::uint64_t length = 0;
  // Mapped repeatedly until the length is reached.
  std::shared_ptr<Memory> source, landing;
  Time start = 0;  // of the first session's; each further one begins `every` later
  std::vector<Time>* finished = nullptr;  // arrival time of each write
  std::uint32_t cts_window = 4;           // Blocks that are granted at once
  Time every = 0;
};

// What the programs of a session do.
struct Workload {
  enum class Kind : std::uint8_t { kLevel0, kManaged, kBulk, kConnectionless } kind = Kind::kLevel0;
  unsigned operations = 12;        // of each session
  std::size_t longest = 16 << 10;  // bytes of one operation
  unsigned at_once = 4;            // operations that run at the same time
  unsigned max_block = 12;         // exponent
  Rate cancels = 0, refusals = 0;
  Rate abrupt = 0;                // sessions that are closed during operations
  Time patience = 120 * kSecond;  // within which every operation must end
  Bulk bulk;
};

struct SessionConfig {
  const Workload& workload;
  std::uint64_t number = 0;
  bool honest = true;  // else one of the hosts lies: results may be wrong, but memory must be safe
};

// The part of an Application that all programs share.
class Party : public Application {
 public:
  enum class State : std::uint8_t { kWaiting, kOpen, kEnded, kGone };
  Party(Run& run, const SessionConfig& config)
      : run_(run), workload_(config.workload), honest_(config.honest), dice_(run.dice.fork()) {}

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool was_lost() const { return lost_; }
  [[nodiscard]] int error() const { return error_; }
  // For a program that never got a connection, so that nobody waits for it.
  void never_came() { state_ = State::kGone; }
  // The program has something to do.
  void poke() {
    if (end_ != nullptr) end_->wake(0);
  }
  // Closes the connection at once, even during operations.
  void abort() {
    if (end_ != nullptr) end_->abort();
  }
  // Whether all canaries are intact. Called when the session is over.
  [[nodiscard]] virtual bool memory_intact() const {
    return (!receive_memory_ || receive_memory_->intact());
  }

  void opened(End& end, const VcInfo& info, Time now) final;
  void ended(int error, Time now) final;
  void gone() final;
  void lost() final;

 protected:
  virtual void map_memory();
  virtual void begin(Time now) = 0;
  virtual void stop(int error, Time now) = 0;
  virtual void forget() {}  // the host went down: the outcome of pending operations is unknown

  // Not required in sessions with a lying host, which can cause such failures.
  void expect(bool holds, const char* what) const {
    if (honest_) run_.verdict.require(holds, what);
  }

  Run& run_;
  const Workload& workload_;
  const bool honest_;
  Dice dice_;
  End* end_ = nullptr;
  VcInfo info_{};
  std::optional<Arena> receive_memory_, transmit_memory_;
  std::uint16_t mx_ = 0;

 private:
  State state_ = State::kWaiting;
  int error_ = 0;
  bool lost_ = false;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual Party& client() = 0;
  virtual Party& server() = 0;
  // Returns what should have ended by now, or an empty string.
  [[nodiscard]] virtual std::string overdue(Time now) = 0;
  // Called when both ends are gone. `reliable`: no fault has occurred that may end a connection.
  virtual void check(bool reliable) = 0;
};

}  // namespace stp::sim
