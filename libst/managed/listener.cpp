// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/listener.h"

#include <algorithm>
#include <vector>

#include "libst/client/error.h"
#include "stp/base/assert.h"

namespace stp::managed {

using client::Payload;

// When the backlog is full, a connection that has sent no request for this long loses its place.
constexpr Time kSilence = kSecond;

int Listener::listen(std::uint32_t uport) {
  domain_->control_mutex().is_held();
  if (const auto error = domain_->take_endpoint(endpoint_); error != 0) return error;
  const auto error =
      domain_->backend().call(ask::Listen{.endpoint = endpoint_, .uport = uport, .reserved = 0});
  if (error == 0) return 0;
  domain_->give_back_endpoint(endpoint_);
  if (error != -EADDRINUSE) return error;
  return client::fail(error, "port " + std::to_string(uport) + " of this link has a listener");
}

void Listener::close() {
  domain_->control_mutex().is_held();
  domain_->backend().call(ask::Unlisten{.endpoint = endpoint_});
  domain_->give_back_endpoint(endpoint_);
  const Lock guard(domain_->mutex());
  closed_ = true;
  domain_->deactivate(*this);
  const auto untold = std::move(untold_);
  untold_.clear();
  for (const auto& connection : untold) {
    client::HandleTable::instance().retire(connection->handle(), Connection::kKind);
    domain_->forget(connection->handle());
    connection->reject({Hello::Kind::kReject, {}});
  }
  queue_.reset();
}

void Listener::accept() {
  domain_->mutex().is_held();
  tell();
  bool full = false;
  do full = requested_ + expected_.size() >= backlog_ && !make_room();
  while (!full && requested_ < backlog_ && take_one());
  // Looks again when the queue has a place or a connection has been silent for too long.
  if (!untold_.empty() || full) domain_->look_for_connections();
}

bool Listener::take_one() {
  domain_->mutex().is_held();
  if (!domain_->staging().has_free()) {
    domain_->staging().want_block();
    return false;
  }
  Payload payload;
  ask::Accept::Reply made{};
  if (domain_->backend().call(ask::Accept{.endpoint = endpoint_}, made, payload) != 0) return false;
  const auto connection = std::make_shared<Connection>(domain_);
  expected_.push_back({&*connection, domain_->now()});
  connection->expect(shared_from_this(), endpoint_, MacAddr::from_u64(made.facts.mac), made.channel,
                     std::move(payload.memory), domain_->staging().take());
  return true;
}

// Called when the backlog is full. Ends one connection that has sent no request within kSilence:
// the oldest one of the station that has most silent connections. Returns false if there is none.
// protocol: 9.40
bool Listener::make_room() {
  domain_->mutex().is_held();
  const auto now = domain_->now();
  std::vector<Connection*> silent;
  std::vector<std::uint64_t> stations;
  std::size_t old = 0;
  for (const auto& [connection, since] : expected_) {
    if (connection->over()) continue;
    const bool is_old = now >= since + kSilence;
    if (!is_old && old == 0) {
      domain_->look_for_connections(since + kSilence);
      return false;
    }
    old += is_old ? 1 : 0;
    silent.push_back(connection);
    stations.push_back(connection->peer_mac().to_u64());
  }
  const auto goes = oldest_of_most(stations, old);
  if (goes) silent[*goes]->give_up();
  return goes.has_value();
}

// In sorted order, because stations choose their addresses: they could all have one place of a
// hash table.
std::optional<std::size_t> Listener::oldest_of_most(std::span<const std::uint64_t> stations,
                                                    std::size_t old) {
  std::vector<std::uint64_t> sorted(stations.begin(), stations.end());
  std::ranges::sort(sorted);
  std::optional<std::size_t> goes;
  std::size_t most = 0;
  for (std::size_t i = 0; i < old; ++i) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), stations[i]);
    const auto count = static_cast<std::size_t>(last - first);
    if (count <= most) continue;
    most = count;
    goes = i;
  }
  return goes;
}

void Listener::requested(const std::shared_ptr<Connection>& connection) {
  domain_->mutex().is_held();
  const auto expected = drop_expected(*connection);
  STP_ASSERT(expected, "a connection that asks was expected");
  ++requested_;
  const auto handle = client::HandleTable::instance().add(Connection::kKind, connection);
  connection->set_handle(handle);
  if (closed_ || handle == 0) {
    client::HandleTable::instance().retire(handle, Connection::kKind);
    connection->reject({Hello::Kind::kReject, {}});
    return;
  }
  domain_->adopt(handle, Connection::kKind);
  untold_.push_back(connection);
  tell();
}

// Reports as many requests as the queue has places for.
void Listener::tell() {
  while (!untold_.empty() && queue_.reserve()) {
    stm_event_t event{};
    event.kind = STM_REQUEST;
    event.context = context_;
    event.connection = reinterpret_cast<stm_connection_t>(untold_.front()->handle());
    queue_.push(event);
    untold_.pop_front();
  }
}

bool Listener::drop_expected(const Connection& connection) {
  return std::erase_if(expected_, [&connection](const Expected& expected) {
           return expected.connection == &connection;
         }) != 0;
}

// One that has ended before the program was told of it is none for the program: who asks and goes,
// again and again, leaves nothing.
void Listener::drop_untold(const Connection& connection) {
  domain_->mutex().is_held();
  const auto found = std::ranges::find_if(
      untold_, [&connection](const auto& untold) { return &*untold == &connection; });
  if (found == untold_.end()) return;
  client::HandleTable::instance().retire(connection.handle(), Connection::kKind);
  domain_->forget(connection.handle());
  untold_.erase(found);
}

void Listener::decided(const Connection& connection) {
  domain_->mutex().is_held();
  if (!drop_expected(connection)) {
    STP_ASSERT(requested_ > 0, "a connection that is decided had asked");
    --requested_;
    drop_untold(connection);
  }
  if (!closed_) domain_->look_for_connections();
}

}  // namespace stp::managed
