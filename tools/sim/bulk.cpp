// SPDX-License-Identifier: BSD-3-Clause
// Long writes: for incasts, for Transfers that are longer than memory, and for streams.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stp/transfer/sequencer.h"
#include "tools/sim/session.h"

namespace stp::sim {
namespace {

class BulkParty : public Party {
 public:
  BulkParty(Run& run, const SessionConfig& config, bool sends)
      : Party(run, config),
        sends_(sends),
        start_(config.workload.bulk.start + (config.number - 1) * config.workload.bulk.every) {}

  void receive(const ReceivedEntry& entry, Time now) override {
    sequencer_->observe_path(end_->cts_repeated(), end_->path_block(), end_->steps());
    sequencer_->receive(entry, now);
  }
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

void BulkParty::begin(Time now) {
  const auto& bulk = workload_.bulk;
  sequencer_.emplace(sequencer_config(info_, workload_.max_block, bulk.cts_window));
  sequencer_->observe_path(end_->cts_repeated(), end_->path_block(), end_->steps());
  host_ = &end_->host();
  const auto& memory = sends_ ? bulk.source : bulk.landing;
  const auto copies = (bulk.length + memory->all().size() - 1) / memory->all().size();
  region_ = host_->map(info_.endpoint, sends_ ? Direction::kTransmit : Direction::kReceive, memory,
                       static_cast<unsigned>(std::max<std::uint64_t>(copies, 1)), at_.bufx);
  if (sends_) return;
  host_->node().alloc_mx(region_, end_->id(), permit::kData, landing_mx_);
  post();
  expire(now);
}

// As many as may run at a time.
void BulkParty::post() {
  const auto& bulk = workload_.bulk;
  for (; posted_ != bulk.writes && posted_ - completed_ < workload_.at_once; ++posted_) {
    if (sends_)
      expect(sequencer_->write(0, at_, bulk.length) == 0, "a long write cannot begin");
    else
      expect(sequencer_->post_receive(0, {landing_mx_, at_, bulk.length}) == 0,
             "a receive cannot be posted");
  }
}

Time BulkParty::next_deadline() const {
  if (!sequencer_) return kNever;
  const auto next = sequencer_->next_deadline();
  return sends_ && posted_ == 0 ? std::min(next, start_) : next;
}

void BulkParty::expire(Time now) {
  sequencer_->taken(end_->taken(), now);
  sequencer_->observe_path(end_->cts_repeated(), end_->path_block(), end_->steps());
  sequencer_->expire(now);
  if (sends_ && posted_ == 0 && now >= start_) post();
}

void BulkParty::work(Time now) {
  sequencer_->taken(end_->taken(), now);
  sequencer_->observe_path(end_->cts_repeated(), end_->path_block(), end_->steps());
  for (Completion c{}; sequencer_->next_completion(c);) on_completion(c, now);
}

void BulkParty::on_completion(const Completion& c, Time now) {
  const auto& bulk = workload_.bulk;
  ++completed_;
  expect(c.status == 0, "a long write fails");
  post();
  if (sends_) return;
  if (bulk.finished != nullptr) bulk.finished->push_back(now);
  const auto length = std::min<std::uint64_t>(bulk.length, bulk.landing->all().size());
  expect(c.length == bulk.length, "a long write arrived with the wrong length");
  expect(std::memcmp(bulk.landing->data(), bulk.source->data(), length) == 0,
         "a long write arrived with the wrong bytes");
}

void BulkParty::stop(int error, Time now) {
  if (!sequencer_) return;
  work(now);  // the last header may have arrived together with the peer's disconnect
  sequencer_->fail(error != 0 ? error : -ECANCELED);
  host_->unmap(region_);
}

std::string BulkSession::overdue(Time now) {
  if (client_.done() || now < client_.start() + config_.workload.patience) return {};
  return "a long write never ends";
}

void BulkSession::check(bool reliable) {
  if (reliable)
    run_.verdict.require(client_.done() && server_.done(), "a long write did not complete");
}

}  // namespace

std::unique_ptr<Session> bulk_session(Run& run, const SessionConfig& config) {
  return std::make_unique<BulkSession>(run, config);
}

}  // namespace stp::sim
