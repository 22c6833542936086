// SPDX-License-Identifier: BSD-3-Clause
// Turns of a domain: decides which connections to visit and when to send what they have posted.
#include <utility>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "libst/managed/listener.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

// The most posts that are sent together. If the program does nothing more, the domain's thread
// sends them: when it resumes (kHandover) or after kLongestBurst.
constexpr unsigned kBurst = 32;
constexpr Time kLongestBurst = 200 * kMicrosecond;

}  // namespace

// Handles what belongs to no single connection: loss of the link, and new connections.
void Domain::look_around() {
  const auto lost = backend_->error();
  if (lost != 0 && !link_lost_) {
    link_lost_ = true;
    for (const auto& connection : connections_) connection->lose(lost);
  }
  link_watch_.look(*backend_);
  const auto accepts = backend_->page().accepts.load(std::memory_order_acquire);
  const bool due = time_ >= connections_due_;
  if (accepts == accepts_seen_ && !look_for_connections_ && !due) return;
  if (due) connections_due_ = kNever;
  accepts_seen_ = accepts;
  look_for_connections_ = false;
  for (const auto& listener : listeners_) listener->accept();
}

void Domain::progress() {
  now();
  posts_ = 0;
  in_turn_ = true;
  look_around();
  do {
    if (std::exchange(places_freed_, false)) agenda_.call_parked();
    take_turn(time_);
  } while (places_freed_ && agenda_.has_parked());
  in_turn_ = false;
  send_all();
}

void Domain::take_turn(Time now) {
  agenda_.gather(backend_->page().news, now);
  look_at_states();
  const auto& turn = agenda_.turn();
  for (auto* const entry : turn) entry->connection->advance(now);
  for (auto* const entry : turn) entry->connection->conclude(now);
  end_turn();
}

// Reports what arrived on other connections before the end of this one. It may have arrived after
// the news was gathered, so if a connection ends, all with headers are visited.
void Domain::look_at_states() {
  bool ends = false;
  for (auto* const entry : agenda_.turn()) ends |= entry->connection->look();
  if (!ends) return;
  for (const auto& connection : connections_)
    if (connection->has_headers()) agenda_.visit(connection->entry());
}

void Domain::end_turn() {
  for (auto* const entry : agenda_.turn()) {
    const auto& connection = *entry->connection;
    if (connection.gone()) {
      gone_.push_back(entry);
      continue;
    }
    agenda_.expect(*entry, connection.next_deadline());
    if (connection.wants_another_look()) agenda_.again(*entry);
    if (connection.waits_for_this_side()) agenda_.park(*entry);
  }
  agenda_.end_turn();
  for (auto* const entry : gone_) drop(*entry);
  gone_.clear();
}

void Domain::drop(Agenda::Entry& entry) {
  STP_ASSERT(
      entry.place < connections_.size() && connections_[entry.place].get() == entry.connection,
      "a connection stands where its entry says");
  if (entry.unsent) std::erase(unsent_, entry.connection);
  agenda_.remove(entry);
  const auto place = entry.place;
  const auto connection = std::exchange(connections_[place], std::move(connections_.back()));
  connections_.pop_back();
  if (place < connections_.size()) connections_[place]->entry().place = place;
}

void Domain::receive_posted() {
  if (!agenda_.has_parked()) return;
  places_freed_ = true;
  progress();
}

void Domain::visit(Connection& connection) {
  if (agenda_.knows(connection.entry())) agenda_.again(connection.entry());
}

void Domain::disown(Connection& connection) {
  if (!agenda_.knows(connection.entry())) return;
  agenda_.disown(connection.entry(), backend_->page().news);
  wake_waiters();
}

void Domain::send_soon(Connection& connection) {
  auto& entry = connection.entry();
  if (!std::exchange(entry.unsent, true)) unsent_.push_back(&connection);
  if (in_turn_) return;
  if (in_list_) {
    ++posts_;
    return;
  }
  // A thread that sleeps in stm_queue_wait() does not send: it wakes only for an answer. So send at
  // once if there is a waiter.
  const bool alone = posts_++ == 0 && !in_bulk_;
  if (alone || posts_ % kBurst == 0 || waiters_ != 0) return send_all();
  has_unsent_.store(true, std::memory_order_relaxed);
  look_before(time_ + kLongestBurst);
}

bool Domain::pump_all() {
  bool any = false;
  for (auto* const connection : unsent_) {
    STP_ASSERT(connection->entry().unsent, "a connection that is to send says so");
    connection->entry().unsent = false;
    any |= connection->pump(time_);
    if (connection->wants_another_look()) visit(*connection);
  }
  unsent_.clear();
  has_unsent_.store(false, std::memory_order_relaxed);
  return any;
}

void Domain::send_all() {
  if (!unsent_.empty() && pump_all()) backend_->rung();
}

Time Domain::time() {
  return posts_ % kBurst == 0 ? now() : time_;
}

void Domain::look_before(Connection& connection) {
  if (!agenda_.knows(connection.entry())) return;
  const auto deadline = connection.next_deadline();
  agenda_.expect(connection.entry(), deadline);
  look_before(deadline);
}

void Domain::look_for_connections(Time deadline) {
  connections_due_ = std::min(connections_due_, deadline);
  look_before(deadline);
}

void Domain::look_before(Time deadline) {
  if (deadline >= thread_looks_.load(std::memory_order_relaxed)) return;
  thread_looks_.store(deadline, std::memory_order_relaxed);
  wake_waiters();
}

}  // namespace stp::managed
