// SPDX-License-Identifier: BSD-3-Clause
// Long writes: for incasts, for Transfers that are longer than memory, and for streams.
#pragma once

#include "stp/transfer/sequencer.h"
#include "tools/sim/session.h"

namespace stp::sim {

class BulkParty : public Party {
 public:
  BulkParty(Run& run, const SessionConfig& config, bool sends)
      : Party(run, config),
        sends_(sends),
        start_(config.workload.bulk.start + (config.number - 1) * config.workload.bulk.every) {}

  void receive(const ReceivedEntry& entry, Time now) override { sequencer_->receive(entry, now); }
  void work(Time now) override;
  bool transmit(SendEntry& out, Time now) override { return sequencer_->transmit(out, now); }
  [[nodiscard]] Time next_deadline() const override;
  void expire(Time now) override;
  [[nodiscard]] bool wants_close() const override { return sends_ && done(); }
  [[nodiscard]] bool done() const { return completed_ == workload_.bulk.writes; }
  [[nodiscard]] Time start() const { return start_; }

 protected:
  void begin(Time now) override;
  void stop(int error, Time now) override;

 private:
  void on_completion(const Completion& c, Time now);
  void post();

  const bool sends_;
  const Time start_;                     // of the first write
  unsigned posted_ = 0, completed_ = 0;  // writes, or receives
  std::optional<Sequencer> sequencer_;
  Host* host_ = nullptr;
  RegionId region_ = kNoneId;
  Address at_;
  std::uint16_t landing_mx_ = 0;
};

class BulkSession : public Session {
 public:
  BulkSession(Run& run, const SessionConfig& config)
      : run_(run), config_(config), client_(run, config, true), server_(run, config, false) {}
  Party& client() override { return client_; }
  Party& server() override { return server_; }
  [[nodiscard]] std::string overdue(Time now) override;
  void check(bool reliable) override;

 private:
  Run& run_;
  const SessionConfig config_;
  BulkParty client_, server_;
};

}  // namespace stp::sim
