// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/managed.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/sim/sequencer_config.h"

namespace stp::sim {
namespace {

constexpr std::uint32_t kMaxCtsWindow = 6;

}  // namespace

void ManagedParty::begin(Time) {
  const auto window = static_cast<std::uint32_t>(dice_.between(1, kMaxCtsWindow));
  sequencer_.emplace(sequencer_config(info_, workload_.max_block, window));
}

void ManagedParty::receive(const ReceivedEntry& entry, Time now) {
  sequencer_->receive(entry, now);
}

bool ManagedParty::transmit(SendEntry& out, Time now) {
  return sequencer_->transmit(out, now);
}

Time ManagedParty::next_deadline() const {
  return sequencer_ ? std::min(sequencer_->next_deadline(), look_again_) : kNever;
}

void ManagedParty::expire(Time now) {
  if (now >= look_again_) look_again_ = kNever;
  if (now >= sequencer_->next_deadline()) sequencer_->expire(now);
}

void ManagedParty::take_completions() {
  for (Completion c{}; sequencer_->next_completion(c);) on_completion(c);
}

void ManagedParty::work(Time now) {
  sequencer_->taken(end_->taken(), now);
  sequencer_->observe_loss(end_->cts_repeated(), end_->path_block());
  take_completions();
  serve_all(now);
  post_receives(now);
  cancel_some();
  while (begun_ < workload_.operations && begin_something(now)) {
  }
  cancel_left_receives();
  take_completions();
  const bool was_idle = idle_since_ != kNever, was_quiet = std::exchange(was_quiet_, quiet());
  if (idle() != was_idle) idle_since_ = was_idle ? kNever : now;
  if (idle() != was_idle || quiet() != was_quiet) peer_->poke();  // the peer may wait for that
}

bool ManagedParty::idle() const {
  return state() == State::kOpen && begun_ == workload_.operations && requests_.empty() &&
         wanted_receives_.empty() && under_way(Kind::kReceive) == pending_.size() &&
         std::none_of(served_.begin(), served_.end(), [this](const auto& served) {
           const auto truth = ledger_.regions.find(served.second.length);
           return truth != ledger_.regions.end() && truth->second.ended();
         });
}

bool ManagedParty::wants_close() const {
  return closes_ && quiet() && peer_->quiet();
}

std::size_t ManagedParty::under_way(Kind kind) const {
  return static_cast<std::size_t>(std::count_if(
      pending_.begin(), pending_.end(), [kind](const auto& p) { return p.second.kind == kind; }));
}

// Cancels receives that were meant for writes that failed. All other receives must be filled.
void ManagedParty::cancel_left_receives() {
  if (!idle() || !peer_->idle() || under_way(Kind::kReceive) > peer_->writes_failed_) return;
  for (auto& [context, p] : pending_) sequencer_->cancel(context);
}

std::string ManagedParty::overdue(Time now) const {
  if (state() != State::kOpen) return {};
  const auto late = [&](Time since) { return since != kNever && now - since > workload_.patience; };
  for (const auto& [context, p] : pending_)
    if (late(p.since) && (p.kind != Kind::kReceive || late(idle_since_)))
      return describe(context, p, "never ends", 0);
  return {};
}

void ManagedParty::stop(int error, Time) {
  if (!sequencer_) return;
  stopping_ = true;
  sequencer_->fail(error != 0 ? error : -ECANCELED);
  take_completions();
  expect(pending_.empty(), "an operation has no completion though its connection has ended");
  expect(sequencer_->outstanding() == 0, "operations are outstanding on a connection that ended");
  // Answers to Gets may still be in flight and read the regions, so their bytes are kept.
  for (auto& [request, served] : served_) {
    close_region(served);
    const auto bytes = receive_memory_->bytes(served.lot);
    served.last.assign(bytes.begin(), bytes.end());
  }
  for (const auto& [context, p] : pending_)
    if (p.lot && p.kind == Kind::kReceive) receive_memory_->give_back(*p.lot);
}

bool ManagedParty::memory_intact() const {
  return Party::memory_intact() &&
         std::all_of(served_.begin(), served_.end(), [this](const auto& entry) {
           const auto& [lot, length, last] = entry.second;
           return std::ranges::equal(receive_memory_->bytes(lot), last) &&
                  receive_memory_->intact_around(lot);
         });
}

void ManagedParty::forget() {
  for (const auto& [context, p] : pending_)
    if (p.kind == Kind::kFetch) ledger_.regions[p.region].fetch_failed(p.fetch);
}

ManagedSession::ManagedSession(Run& run, const SessionConfig& config)
    : run_(run),
      honest_(config.honest),
      client_(run, config, ledger_),
      server_(run, config, ledger_) {
  ledger_.session = config.number;
  constexpr std::size_t kWhoCloses = 3;
  const auto who = run.dice.below(kWhoCloses);
  client_.meet(server_, who != 1);
  server_.meet(client_, who != 0);
}

std::string ManagedSession::overdue(Time now) {
  const auto late = client_.overdue(now);
  return late.empty() ? server_.overdue(now) : late;
}

void ManagedSession::check(bool reliable) {
  if (!honest_) return;
  for (const auto& [length, region] : ledger_.regions)
    run_.verdict.require(region.totals_right(), "FetchOps do not add up to what was asked for");
  if (!reliable) return;
  if (!ledger_.unexplained.empty()) run_.verdict.fail(ledger_.unexplained);
  for (const auto* const party : {&client_, &server_})
    run_.verdict.require(party->error() == 0 || party->error() == -EPIPE,
                         "a connection was cut short without a reason");
}

}  // namespace stp::sim
