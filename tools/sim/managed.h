// SPDX-License-Identifier: BSD-3-Clause
// Two programs on the managed layer: each begins operations of every kind, serves those of the
// other, and checks the results against the ledger.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "stp/transfer/sequencer.h"
#include "tools/sim/memory.h"
#include "tools/sim/session.h"

namespace stp::sim {

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
  bool transmit(SendEntry& out, Time now) override;
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
