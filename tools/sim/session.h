// SPDX-License-Identifier: BSD-3-Clause
// A session: the two programs of one connection, and the checks of what they must see.
#pragma once

#include <memory>
#include <string>

#include "stp/transfer/sequencer.h"
#include "stp/wire/tiling.h"
#include "tools/sim/host.h"

namespace stp::sim {

// The place of an operation's bytes: inside a lot, with a margin around them.
struct Lot {
  std::size_t index = 0;
  std::size_t start = 0;  // of the operation's bytes, from the start of the arena
  std::size_t length = 0;
};

// A program's mapped memory, divided into lots: each operation has one of its own. Receive memory
// holds a canary pattern wherever nothing was granted.
class Arena {
 public:
  Arena(Host& host, EndpointId endpoint, Direction direction, std::size_t lots,
        std::size_t lot_size);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns nullopt if all lots are taken.
  std::optional<Lot> take(std::size_t length, std::size_t alignment, Dice& dice);
  void give_back(const Lot& lot);
  [[nodiscard]] MutableBytes bytes(const Lot& lot) const {
    return memory_->all().subspan(lot.start, lot.length);
  }
  [[nodiscard]] Address address(const Lot& lot) const;
  // Returns an Mx for the whole arena that is valid on one connection.
  std::uint16_t allow(VcId vc, std::uint8_t permissions);
  // A lying host that knows the Mx can write anywhere in the arena without a grant, so its canaries
  // are not checked.
  void open_to_all() { open_ = true; }
  [[nodiscard]] std::size_t largest() const { return lot_size_ - 2 * kMargin; }

  // Whether the canary around the operation's bytes is intact.
  [[nodiscard]] bool intact_around(const Lot& lot) const;
  // Whether the canary of all free lots is intact.
  [[nodiscard]] bool intact() const;
  void unmap();  // only while the host is up

 private:
  static constexpr std::size_t kMargin = 64;
  [[nodiscard]] MutableBytes whole(std::size_t index) const {
    return memory_->all().subspan(index * lot_size_, lot_size_);
  }

  Host& host_;
  unsigned bufsize_;
  std::size_t lot_size_;
  std::shared_ptr<Memory> memory_;
  std::vector<bool> taken_;
  bool open_ = false;
  std::uint32_t bufx_ = 0;
  RegionId region_;
};

// Each session has long writes.
struct Bulk {
  std::uint64_t length = 0;  // of one
  // Mapped repeatedly until the length is reached.
  std::shared_ptr<Memory> source, landing;
  Time start = 0;  // of the first session's; each further one begins `every` later
  std::vector<Time>* finished = nullptr;  // arrival time of each write
  std::uint32_t cts_window = 4;           // Blocks that are granted at once
  Time every = 0;
  unsigned writes = 1;  // of a session; Workload::at_once of them run at a time
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

// A session of one kind of workload.
std::unique_ptr<Session> level0_session(Run& run, const SessionConfig& config);
std::unique_ptr<Session> bulk_session(Run& run, const SessionConfig& config);
std::unique_ptr<Session> connectionless_session(Run& run, const SessionConfig& config);

// The parameters that the two Nodes have negotiated.
SequencerConfig sequencer_config(const VcInfo& info, unsigned max_block, std::uint32_t cts_window);

}  // namespace stp::sim
