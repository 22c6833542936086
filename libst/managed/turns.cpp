// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/turns.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "dpdk_port/link/start_thread.h"
#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "libst/managed/listener.h"
#include "libst/managed/queue.h"
#include "stp/base/assert.h"

namespace stp::managed {

void Agenda::add(Entry& entry, Connection& connection, std::uint32_t channel) {
  STP_ASSERT(!knows(entry), "a connection is added once");
  entry.connection = &connection;
  if (free_timers_.empty()) {
    entry.timer = static_cast<std::uint32_t>(timed_.size());
    timed_.emplace_back();
  } else {
    entry.timer = free_timers_.back();
    free_timers_.pop_back();
  }
  timed_[entry.timer].entry = &entry;
  take_channel(entry, channel);
}

void Agenda::take_channel(Entry& entry, std::uint32_t channel) {
  STP_ASSERT(knows(entry), "a connection that has a channel was added");
  entry.channel = channel;
  if (channel >= by_channel_.size()) {
    by_channel_.resize(channel + 1);
    own_.resize(channel / 64 + 1);
  }
  auto& place = by_channel_[channel];
  // The service has reused the channel's number. News that came for it was about the end of the
  // previous connection.
  if (place != nullptr) again(*place);
  place = &entry;
  own_[channel / 64] |= std::uint64_t{1} << channel % 64;
  again(entry);
}

void Agenda::remove(Entry& entry) {
  STP_ASSERT(knows(entry), "a connection that is removed was added");
  timers_.remove(entry.timer);
  timed_[entry.timer] = {};
  free_timers_.push_back(entry.timer);
  if (std::exchange(entry.in_turn, false)) std::erase(turn_, &entry);
  if (std::exchange(entry.again, false)) std::erase(again_, &entry);
  if (std::exchange(entry.parked, false)) std::erase(parked_, &entry);
  entry.connection = nullptr;
  forget_channel(entry);
}

// Another connection may already have the channel's number.
void Agenda::forget_channel(const Entry& entry) {
  STP_ASSERT(entry.channel < by_channel_.size(), "a channel that was added has its place");
  auto& place = by_channel_[entry.channel];
  if (place != &entry) return;
  place = nullptr;
  own_[entry.channel / 64] &= ~(std::uint64_t{1} << entry.channel % 64);
}

void Agenda::disown(Entry& entry, ipc::Doorbells& news) {
  forget_channel(entry);
  news.ring(entry.channel);
}

void Agenda::gather(ipc::Doorbells& news, Time now) {
  news.collect(own_, [this](std::uint32_t channel) {
    STP_ASSERT(channel < by_channel_.size() && by_channel_[channel] != nullptr,
               "news are taken for a connection that is there");
    visit(*by_channel_[channel]);
  });
  while (timers_.next() <= now) {
    const auto timer = timers_.first();
    auto& [entry, due] = timed_[timer];
    if (due > now) {
      timers_.set(timer, due);
      continue;
    }
    timers_.remove(timer);
    due = kNever;
    visit(*entry);
  }
  for (auto* const entry : again_) {
    entry->again = false;
    visit(*entry);
  }
  again_.clear();
}

void Agenda::visit(Entry& entry) {
  STP_ASSERT(knows(entry), "a connection that is visited was added");
  if (std::exchange(entry.in_turn, true)) return;
  turn_.push_back(&entry);
}

void Agenda::end_turn() {
  for (auto* const entry : turn_) entry->in_turn = false;
  turn_.clear();
}

void Agenda::again(Entry& entry) {
  if (!std::exchange(entry.again, true)) again_.push_back(&entry);
}

void Agenda::park(Entry& entry) {
  if (!std::exchange(entry.parked, true)) parked_.push_back(&entry);
}

void Agenda::call_parked() {
  for (auto* const entry : parked_) {
    entry->parked = false;
    again(*entry);
  }
  parked_.clear();
}

void Background::start(std::function<Time()> turn) {
  STP_ASSERT(!thread_.joinable(), "a domain has one background thread");
  turn_ = std::move(turn);
  thread_ = start_thread([this] { run(); });
}

void Background::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  take_over();
  client::wake_all(events_word());
  thread_.join();
}

void Background::take_over() {
  {
    const Lock guard(mutex_);
    taken_over_ = true;
  }
  called_.notify_all();
}

void Background::leave() {
  // Sequentially consistent on both sides: either this thread sees far_away_, or the background
  // thread sees that the visitor has left.
  visitors_.fetch_sub(1);
  if (!far_away_.load()) return;
  { const Lock guard(mutex_); }  // it waits, or has not checked visitors_ yet
  called_.notify_all();
}

// Waits while the program's threads make progress. `visited`: a visit has begun since the last
// check, so waits for a short while (absence_). Otherwise the same visitor is still inside: it
// makes all progress and calls this thread when it leaves. Returns true if a visitor asked the
// thread to take over.
bool Background::stay_away(bool visited) {
  Lock guard(mutex_);
  far_away_ = !visited;
  if (!visited) absence_.end();
  const auto away = far_away_ && visitors_.load() != 0 ? kLongestSleep : absence_.prolong();
  if (!taken_over_ && !stopping_)
    guard.wait_until(called_, std::chrono::steady_clock::now() + std::chrono::nanoseconds(away));
  far_away_ = false;
  return std::exchange(taken_over_, false);
}

void Background::sleep_until(std::uint32_t seen, Time deadline) {
  client::PageEvents page(backend_.page());
  const auto present = page.begin_sleep();
  if (present == seen && !stopping_) client::sleep_at(page, seen, deadline);
  page.end_sleep();
}

void Background::run() {
  std::uint32_t visits_seen = visits_;
  while (!stopping_) {
    const auto visits = visits_.load(std::memory_order_relaxed);
    if (visits != visits_seen || visitors_.load(std::memory_order_relaxed) != 0) {
      visits_seen = stay_away(visits != visits_seen) ? visits_.load() : visits;
      continue;
    }
    const auto seen = events_word().load();
    if (const auto deadline = turn_(); deadline != 0) sleep_until(seen, deadline);
  }
}

namespace {

// ---- turns of a domain: which connections to visit, and when to send what they have posted ----

// If the program does nothing more, the domain's thread sends what was posted: when it resumes
// (kHandover) or after kLongestBurst.
constexpr std::size_t kLongBurst = 60'000;  // bytes, of lists
constexpr Time kLongestBurst = 200 * kMicrosecond;

}  // namespace

// Handles what belongs to no single connection: loss of the link, and new connections.
void Domain::look_around() {
  const auto lost = backend_->error();
  if (lost != 0 && !link_lost_) {
    link_lost_ = true;
    for (const auto& connection : connections_) connection->lose(lost);
  }
  link_watch_.look(*backend_, lost);
  WrongKeys::Requests waited;
  while (auto* const connection = wrong_keys_.take(time_, waited)) connection->refuse_key(waited);
  const auto accepts = backend_->page().accepts.load(std::memory_order_acquire);
  const bool due = time_ >= connections_due_;
  if (accepts == accepts_seen_ && !look_for_connections_ && !due) return;
  if (due) connections_due_ = kNever;
  accepts_seen_ = accepts;
  look_for_connections_ = false;
  for (const auto& listener : listeners_) listener->accept();
}

void Domain::progress(Time now) {
  time_ = std::max(time_, now != 0 ? now : clock_.now());
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
  if (!agenda_.turn().empty()) visit_all(now);
}

namespace {

// Where there are fewer connections, the caches hold what they use anyway.
constexpr std::size_t kManyConnections = 256;
// What so many in a row use is brought at a time: a group.
constexpr std::size_t kFetchedAhead = 8;

// Call before each group is visited, which begins with number `next` of `count`. Each of the next
// groups takes one step, the further the earlier one: so what a step reads has come while a group
// was visited. `at(i)`: nullptr: it is gone.
template <typename At>
[[gnu::noinline]] void fetch_groups_ahead(std::size_t next, std::size_t count, At&& at) {
  for (unsigned step = 0; step < Connection::kFetchSteps; ++step) {
    const auto furthest = next + (Connection::kFetchSteps - 1 - step) * kFetchedAhead;
    // At first, those before it take it, too.
    const auto end = std::min(count, furthest + kFetchedAhead);
    for (auto i = next == 0 ? 0 : furthest; i < end; ++i)
      if (const Connection* const connection = at(i); connection != nullptr)
        connection->fetch_ahead(step);
  }
}

}  // namespace

void Domain::count_connections() {
  has_many_.store(connections_.size() >= kManyConnections, std::memory_order_relaxed);
}

[[gnu::noinline]] void Domain::fetch_ahead_of(std::span<const stm_event_t> events) {
  constexpr std::size_t kHeld = 64;
  const auto& handles = client::HandleTable::instance();
  const auto handle_of = [](const stm_event_t& event) {
    return reinterpret_cast<Handle>(event.connection);
  };
  for (; !events.empty(); events = events.subspan(std::min(events.size(), kHeld))) {
    const auto count = std::min(events.size(), kHeld);
    for (const auto& event : events.first(count)) handles.fetch_ahead(handle_of(event));
    std::array<std::optional<client::Ref<Connection>>, kHeld> held;
    for (std::size_t i = 0; i < count; ++i)
      // Several completions of one connection come in a row.
      if (i == 0 || events[i].connection != events[i - 1].connection)
        held[i].emplace(client::find<Connection>(handle_of(events[i])));
    const Lock guard(mutex_);
    const auto at = [&held](std::size_t i) { return held[i] ? held[i]->get() : nullptr; };
    for (std::size_t first = 0; first < count; first += kFetchedAhead)
      fetch_groups_ahead(first, count, at);
  }
}

void Domain::visit_all(Time now) {
  look_at_states();
  const auto& turn = agenda_.turn();
  const bool many = has_many();
  const auto at = [&turn](std::size_t i) { return turn[i]->connection; };
  for (std::size_t i = 0; i < turn.size(); ++i) {
    if (many && i % kFetchedAhead == 0) fetch_groups_ahead(i, turn.size(), at);
    turn[i]->connection->advance(now);
  }
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
  count_connections();
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

void Domain::send_soon(Connection& connection, Time now) {
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
  if (alone) return send_all(now);
  if (posts_ % kBurst == 0 || waiters_ != 0) return send_all();
  has_unsent_.store(true, std::memory_order_relaxed);
  look_before(time_ + kLongestBurst);
}

// A list leaves as single posts do: alone at once, among others together with them. Then what has
// one length goes to the device together. Long lists fill a call of their own.
void Domain::end_list(unsigned posts_before, std::size_t bytes) {
  in_list_ = false;
  list_bytes_ += bytes;
  const bool alone = posts_before == 0 && !in_bulk_;
  const bool is_full = posts_ / kBurst != posts_before / kBurst || list_bytes_ >= kLongBurst;
  if (alone || is_full || waiters_ != 0) return send_all();
  if (unsent_.empty()) return;
  has_unsent_.store(true, std::memory_order_relaxed);
  look_before(time_ + kLongestBurst);
}

bool Domain::pump_all() {
  bool any = false;
  list_bytes_ = 0;
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

void Domain::send_all(Time now) {
  if (!unsent_.empty() && pump_all()) backend_->rung(now);
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

// ---- who makes progress: the program's threads that poll or wait, else the background thread ----

int Domain::drain(Queue& queue, stm_event_t* events, int max) {
  const auto count = queue.take(events, max);
  in_bulk_ = count > 1;
  if (places_freed_ && (agenda_.has_parked() || look_for_connections_ || link_watch_.is_behind()))
    progress();
  return count;
}

int Domain::poll(Queue& queue, stm_event_t* events, int max) {
  int count = 0;
  bool watched = false, short_of_staging = false;
  {
    if (has_unsent_.load(std::memory_order_relaxed)) {
      const Lock guard(mutex_);
      // look() below makes the service send it, unless the service is asleep in another process.
      if (pump_all() && backend_->page().service_asleep.load() != 0) backend_->rung(0);
    }
    const auto turn = backend_->look(number_);
    const Lock guard(mutex_);
    background_.visited();
    if (queue.destroyed()) {
      wake_waiters();  // nobody was woken for what this thread does not look at now
      return -EBADF;
    }
    progress(turn);
    count = drain(queue, events, max);
    look_before(next_deadline());  // nobody else was woken for the news
    watched = queue.has_descriptor();
    short_of_staging = staging_.is_wanted();
  }
  if (short_of_staging) provide_staging();
  // The queue is empty and has a descriptor: the program is probably about to sleep on it.
  if (count == 0 && watched) background_.take_over();
  return count;
}

int Domain::wait(Queue& queue, int threshold, stm_event_t* events, int max, Time deadline) {
  const Background::Visit visit(background_);
  client::PageEvents page(backend_->page());
  for (int lost = 0;;) {
    const auto seen = events_word().load();
    auto until = deadline;
    {
      const Lock guard(mutex_);
      background_.visited();
      if (queue.destroyed()) return -ECANCELED;
      progress();
      const auto over = client::now() >= deadline;
      if (queue.size() >= static_cast<std::size_t>(threshold) || (over && queue.size() > 0))
        return drain(queue, events, max);
      if (lost != 0) return queue.size() > 0 ? drain(queue, events, max) : backend_->gone();
      if (over) return -EWOULDBLOCK;
      until = staging_.is_wanted() ? 0 : std::min(deadline, next_deadline());
      ++queue.waiters;
      ++waiters_;
      // A thread that posts with an earlier deadline wakes this one: the domain's thread does not
      // run meanwhile.
      thread_looks_.store(next_deadline(), std::memory_order_relaxed);
    }
    if (until == 0) provide_staging();
    auto news = [&] { return events_word().load() != seen; };
    const auto waited = client::wait_until(*backend_, page, until, news);
    const Lock guard(mutex_);
    --queue.waiters;
    --waiters_;
    if (waited == -EINTR && queue.size() == 0) return -EINTR;
    lost = backend_->error();
  }
}

Time Domain::background_turn() {
  Time deadline = 0;
  bool short_of_staging = false;
  {
    const Lock guard(mutex_);
    progress();
    deadline = std::min(next_deadline(), time_ + Background::kLongestSleep);
    thread_looks_.store(deadline, std::memory_order_relaxed);
    short_of_staging = staging_.is_wanted();
  }
  return short_of_staging && provide_staging() == 0 ? 0 : deadline;
}

}  // namespace stp::managed
