// SPDX-License-Identifier: BSD-3-Clause
// A session: the two programs of one connection, and the checks of what they must see.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "stp/transfer/sequencer.h"
#include "stp/wire/tiling.h"
#include "tools/sim/host.h"
#include "tools/sim/memory.h"

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

// Two programs on the managed layer: each begins operations of every kind, serves those of the
// other, and checks the results against the ledger.

// The expected results of a session of the managed layer: what one side has begun and the other
// side must find.
struct WriteTruth {
  std::uint64_t length = 0;
  bool received = false;  // reported to the receiver's program
};

struct ReadTruth {
  std::uint64_t pattern = 0;
  bool arrived = false;
};

// No two reads and no two regions of a session have the same length: the serving side identifies
// them by it.
struct Ledger {
  std::uint64_t session = 0;
  std::uint64_t next_context = 1;
  std::map<std::uint32_t, WriteTruth> writes;    // by tag
  std::map<std::uint64_t, ReadTruth> reads;      // by length
  std::map<std::uint64_t, RegionTruth> regions;  // by length
  std::uint64_t refusals = 0, cancels = 0;       // made by the programs
  std::uint64_t dropped = 0;                     // receives cancelled, perhaps already filled
  std::string unexplained;                       // a failure that no planned event explains

  std::uint64_t new_context() { return next_context++; }
  [[nodiscard]] std::uint64_t pattern(std::uint64_t number) const { return session << 20 | number; }
};

class ManagedParty : public Party {
 public:
  using Kind = Completion::Kind;
  ManagedParty(Run& run, const SessionConfig& config, Ledger& ledger)
      : Party(run, config), ledger_(ledger) {}
  void meet(ManagedParty& peer, bool closes) {
    peer_ = &peer;
    closes_ = closes;
  }

  void receive(const ReceivedEntry& entry, Time now) override;
  void work(Time now) override;
  bool send(UserChannel& to, Time now) override;
  [[nodiscard]] Time next_deadline() const override;
  void expire(Time now) override;
  [[nodiscard]] bool wants_close() const override;
  [[nodiscard]] bool memory_intact() const override;

  // All own operations are over and no request of the peer waits. Receives may be left whose writes
  // have failed.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool quiet() const { return idle() && under_way(Kind::kReceive) == 0; }
  void want_receive(std::uint64_t length);
  [[nodiscard]] std::size_t under_way(Kind kind) const;
  [[nodiscard]] std::string overdue(Time now) const;

 protected:
  void begin(Time now) override;  // of the connection
  void stop(int error, Time now) override;
  void forget() override;

 private:
  struct Pending {
    Kind kind = Kind::kWrite;
    std::optional<Lot> lot;     // source, or landing
    std::uint64_t pattern = 0;  // of what is sent or expected
    std::uint64_t length = 0;
    std::uint32_t tag = 0;     // write
    std::uint64_t region = 0;  // put, get, fetch: the region's length names it
    std::size_t slot = 0;      // put, get
    FetchTruth fetch;
    Time since = 0;
    bool cancel = false;     // will be cancelled at some time
    bool cancelled = false;  // the program has cancelled it
  };
  struct Served {
    Lot lot;
    std::uint64_t length = 0;
    std::vector<std::byte> last;  // its content when the connection ended
  };
  struct Request {
    std::uint32_t number = 0;
    std::uint64_t length = 0;
    bool region = false;
  };
  struct OpenRegion {
    RemoteRegion remote;
    unsigned users = 0;  // operations on it
  };

  // --- managed_begin.cpp: own operations
  bool begin_something(Time now);
  bool begin_write(Time now);
  bool begin_read(Time now);
  bool begin_region(Time now);
  bool begin_on_region(Time now);
  bool begin_put(OpenRegion& region, Time now);
  bool begin_get(OpenRegion& region, Time now);
  bool begin_fetch(OpenRegion& region, Time now);
  bool end_some_region();
  bool started(int error, Context context, Pending pending, Time now);
  void cancel_some();
  void cancel_left_receives();
  [[nodiscard]] std::uint64_t draw_length();
  [[nodiscard]] Landing landing(const Lot& lot) const;
  std::optional<std::size_t> idle_slot(RegionTruth& truth);

  // --- managed_serve.cpp: the peer's operations
  void serve_all(Time now);
  bool serve_read(const Request& request, Time now);
  bool serve_region(const Request& request);
  void post_receives(Time now);
  bool drop_receive();
  void close_region(const Served& served);
  void on_region_ended(const Completion& c);

  // --- managed_check.cpp: results
  static const char* name_of(Kind kind);
  [[nodiscard]] std::string describe(Context context, const Pending& p, const char* what,
                                     int status) const;
  void take_completions();
  void on_completion(const Completion& c);
  void check_status(const Pending& p, int status);
  void check_write(const Pending& p, int status);
  void check_receive(const Pending& p, const Completion& c);
  void check_read(const Pending& p, int status);
  void check_serve(const Pending& p, int status);
  void check_region(const Completion& c);
  void lose_region(std::uint64_t length);
  void region_is_lost(std::uint64_t length);
  void check_put(const Pending& p, int status);
  void check_get(const Pending& p, int status);
  void check_fetch(const Pending& p, int status);
  void release(const Pending& p);
  [[nodiscard]] bool holds(Kind kind, std::uint64_t pattern, std::uint64_t length) const;
  [[nodiscard]] bool region_holds(std::uint64_t length, std::size_t at, std::size_t size,
                                  std::uint64_t pattern) const;

  Ledger& ledger_;
  ManagedParty* peer_ = nullptr;
  bool closes_ = true;  // closes the connection when all is done
  std::optional<Sequencer> sequencer_;
  unsigned begun_ = 0;
  unsigned regions_begun_ = 0;
  std::uint64_t writes_failed_ = 0;
  std::map<Context, Pending> pending_;
  std::deque<std::uint64_t> wanted_receives_;  // lengths of the peer's writes
  std::deque<Request> requests_;
  std::map<std::uint32_t, Served> served_;       // by request
  std::map<std::uint64_t, OpenRegion> regions_;  // the peer's, by length
  Time look_again_ = kNever;                     // time of postponed work
  Time idle_since_ = kNever;
  bool was_quiet_ = false, stopping_ = false;
};

class ManagedSession : public Session {
 public:
  ManagedSession(Run& run, const SessionConfig& config);
  Party& client() override { return client_; }
  Party& server() override { return server_; }
  [[nodiscard]] std::string overdue(Time now) override;
  void check(bool reliable) override;

 private:
  Run& run_;
  bool honest_;
  Ledger ledger_;
  ManagedParty client_, server_;
};

}  // namespace stp::sim
