// SPDX-License-Identifier: BSD-3-Clause
// Two programs without a connection. Each puts Blocks into the other's memory without grants and
// asks with Request_State whether they have arrived. The other program answers (protocol, section
// 11).
#pragma once

#include <deque>
#include <list>

#include "tools/sim/session.h"

namespace stp::sim {

// A Block that is in flight, or whose name cannot be reused yet.
struct Parcel {
  std::uint32_t number = 0;  // distinguishes it from earlier Blocks of the same name
  std::uint32_t d_id = 0, b_num = 0;
  std::uint16_t flags = 0;
  bool append = false;
  Lot source, place;
  bool under_way = true;
  Time begun = 0, sent = 0;  // sent: last
  Time act_at = 0;           // when to ask for it, or to repeat it without need
  Time pause = 0;
  std::optional<Time> delivered;  // as its receiver knows
};

class Correspondent : public Party {
 public:
  using Party::Party;
  void write_to(Correspondent& peer) { peer_ = &peer; }

  void receive(const ReceivedEntry& entry, Time now) override;
  void work(Time) override {}
  bool transmit(SendEntry& out, Time now) override;
  [[nodiscard]] Time next_deadline() const override { return due_; }
  void expire(Time now) override;
  [[nodiscard]] bool wants_close() const override { return done_; }
  [[nodiscard]] bool memory_intact() const override;
  [[nodiscard]] bool all_confirmed() const { return confirmed_ == workload_.operations; }
  // Whether a Block that began before `time` is still in flight.
  [[nodiscard]] bool waits_since(Time time) const;

 protected:
  void map_memory() override;
  void begin(Time now) override;
  void stop(int error, Time now) override;

 private:
  // --- sender
  void begin_parcels(Time now);
  void begin_parcel(Time now);
  [[nodiscard]] bool can_begin() const;
  void choose_name(Parcel& parcel);
  void act(Parcel& parcel, Time now);
  void repeat(const Parcel& parcel);
  void ask(const Parcel& parcel);
  void on_answer(const wire::Header& rsr, Time now);
  void rest(Parcel& parcel, Time now);
  [[nodiscard]] static Time over_at(const Parcel& parcel);
  void schedule(Time now);
  [[nodiscard]] Parcel* find(std::uint32_t d_id, std::uint32_t b_num, std::uint32_t number);
  // --- receiver
  void on_block(const ReceivedEntry& entry, Time now);
  void answer(const wire::Header& question);
  // --- both
  [[nodiscard]] SendEntry request(wire::Op op, std::uint32_t sync) const;

  Correspondent* peer_ = nullptr;
  std::uint64_t mac_ = 0;
  std::optional<Arena> before_, after_;  // mapped around the landing, without an Mx
  std::list<Parcel> parcels_;
  std::uint32_t begun_ = 0, confirmed_ = 0;
  std::deque<SendEntry> requests_;
  Time heard_ = 0, due_ = kNever;
  bool done_ = false;
};

class ConnectionlessSession : public Session {
 public:
  ConnectionlessSession(Run& run, const SessionConfig& config);
  Party& client() override { return one_; }
  Party& server() override { return other_; }
  [[nodiscard]] std::string overdue(Time now) override;
  void check(bool reliable) override;

 private:
  Run& run_;
  const SessionConfig config_;
  Correspondent one_, other_;
};

}  // namespace stp::sim
