// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/endpoint.h"

#include "libst/client/answers.h"
#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "libst/client/links.h"
#include "libst/client/wait.h"
#include "libst/ipc/requests.h"
#include "stp/base/assert.h"

namespace stp::client {

void Mappings::add(RegionId region, Direction direction, BufxInterval interval) {
  const WriteLock guard(mutex_);
  STP_ASSERT(interval.count > 0 && !regions_.contains(region), "a region is mapped once");
  STP_ASSERT(direction != Direction::kTransmit || !transmit_.contains(interval.first),
             "no two regions have the same Bufx");
  regions_[region] = {direction, interval};
  if (direction == Direction::kTransmit) transmit_[interval.first] = interval.count;
}

void Mappings::remove(RegionId region) {
  const WriteLock guard(mutex_);
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  if (at->second.direction == Direction::kTransmit) {
    STP_ASSERT(transmit_.contains(at->second.interval.first), "what is removed was added");
    transmit_.erase(at->second.interval.first);
    found_.store(0, std::memory_order_relaxed);
  }
  regions_.erase(at);
  std::erase_if(mxs_, [region](auto& mx) { return mx.second.region == region; });
}

void Mappings::add_mx(std::uint16_t mx, RegionId region, VcId vc) {
  const WriteLock guard(mutex_);
  if (const auto at = regions_.find(region); at != regions_.end())
    mxs_[mx] = {region, vc, at->second.interval};
}

void Mappings::remove_mx(std::uint16_t mx) {
  const WriteLock guard(mutex_);
  mxs_.erase(mx);
}

void Mappings::remove_mx_of(VcId vc) {
  const WriteLock guard(mutex_);
  std::erase_if(mxs_, [vc](auto& mx) { return mx.second.vc == vc; });
}

bool Mappings::owns_mx(VcId vc, std::uint16_t mx) const {
  const ReadLock guard(mutex_);
  return find_mx(vc, mx) != nullptr;
}

const Mappings::MxRecord* Mappings::find_mx(VcId vc, std::uint16_t mx) const {
  const auto at = mxs_.find(mx);
  if (at == mxs_.end()) return nullptr;
  return at->second.vc == kNoneId || at->second.vc == vc ? &at->second : nullptr;
}

bool Mappings::can_send(std::uint32_t bufx, std::uint32_t offset, std::uint32_t length,
                        unsigned bufsize) const {
  const auto last = bufx + ((std::uint64_t{offset} + length - 1) >> bufsize);
  const auto found = found_.load(std::memory_order_relaxed);
  if (bufx >= found >> 32 && last < (found >> 32) + (found & UINT32_MAX)) return true;
  return find_transmit(bufx, last);
}

bool Mappings::find_transmit(std::uint32_t bufx, std::uint64_t last) const {
  const ReadLock guard(mutex_);
  for (std::uint64_t next = bufx; next <= last;) {
    auto after = transmit_.upper_bound(static_cast<std::uint32_t>(next));
    if (next > UINT32_MAX || after == transmit_.begin()) return false;
    const auto& [first, count] = *--after;
    const auto end = std::uint64_t{first} + count;
    if (next >= end) return false;
    // Stored under the lock, so that it is never stored after remove() has cleared it.
    found_.store(std::uint64_t{first} << 32 | count, std::memory_order_relaxed);
    next = end;
  }
  return true;
}

bool Mappings::can_grant(VcId vc, std::uint16_t mx, std::uint32_t bufx) const {
  const ReadLock guard(mutex_);
  const auto* const record = find_mx(vc, mx);
  return record != nullptr && record->interval.contains(bufx);
}

namespace {

constexpr Time kConnectPatience = 5 * kSecond;

}  // namespace

int Endpoint::open(const std::optional<Name>& name, bool connectionless,
                   std::shared_ptr<Endpoint>& out) {
  std::shared_ptr<Backend> backend;
  // The Port of a connectionless endpoint says which shard has it.
  const ShardChoice shard{.port = name && connectionless ? name->uport : 0};
  if (const auto error = use_link(backend, shard); error != 0) return error;
  if (name)
    if (const auto error = check_own(*backend, name->host); error != 0) return error;
  auto endpoint =
      std::make_shared<Endpoint>(std::move(backend), name ? name->uport : 0, connectionless);
  ask::OpenEndpoint request{.config = ipc::to_wire(EndpointConfig{})};
  request.config.connectionless = connectionless ? 1 : 0;
  if (connectionless) request.config.port = endpoint->uport_;
  ask::OpenEndpoint::Reply reply{};
  if (const auto error = endpoint->backend().call(request, reply); error != 0) return error;
  endpoint->id_ = reply.endpoint;
  {
    const Lock guard(endpoint->mutex_);
    endpoint->config_ = reply.config;
  }
  out = std::move(endpoint);
  return 0;
}

Endpoint::~Endpoint() {
  if (id_ == kNoneId) return;
  try {
    backend_->call(ask::CloseEndpoint{.endpoint = id_});
  } catch (...) {  // the service ends the endpoint when it removes this client
  }
}

ipc::WireConfig Endpoint::config() const {
  const Lock guard(mutex_);
  return config_;
}

std::uint32_t Endpoint::get_option(const OptionRule& rule) const {
  const Lock guard(mutex_);
  return config_.*rule.config;
}

int Endpoint::set_option(const OptionRule& rule, std::uint32_t value) {
  const Lock guard(mutex_);
  ask::Configure asking{.endpoint = id_, .config = config_};
  asking.config.*rule.config = value;
  ask::Configure::Reply reply{};
  const auto error = backend_->call(asking, reply);
  if (error == 0) config_ = reply.config;
  if (error == -EADDRNOTAVAIL)
    return fail(error,
                "Port " + std::to_string(value) +
                    " belongs to another shard of the link (queues=): take one that differs by a "
                    "multiple of queues from a Port that this endpoint was given, or 0 for any");
  if (error == -EBUSY)
    return fail(error,
                connectionless_
                    ? "options must be set before st_map, st_utx and st_urx, and before the Port "
                      "or the Key is asked for"
                    : "options must be set before st_map, st_listen and st_connect");
  return error;
}

int Endpoint::listen() {
  if (connectionless_) return fail(-EOPNOTSUPP, "a connectionless endpoint does not listen");
  if (uport_ == 0) return fail(-EINVAL, "the endpoint was created without a port to listen on");
  const auto error = backend_->call(ask::Listen{.endpoint = id_, .uport = uport_, .reserved = 0});
  if (error == -EADDRINUSE)
    return fail(error, "port " + std::to_string(uport_) + " of this link has a listener already");
  if (error == 0) listening_ = true;
  return error;
}

// ---- children ----

template <typename Child>
int Endpoint::publish(const std::shared_ptr<Child>& child, Handle& out) {
  auto& table = HandleTable::instance();
  const auto handle = table.add(Child::kKind, child);
  if (handle == 0) return fail(-EMFILE, "too many handles");
  child->set_handle(handle);
  {
    const Lock guard(mutex_);
    if (!ended()) {
      STP_ASSERT(!children_.contains(handle), "a handle is given once");
      children_.insert(handle);
      out = handle;
      return 0;
    }
  }
  table.retire(handle, Child::kKind);
  return -ECANCELED;
}

void Endpoint::forget(Handle child) {
  const Lock guard(mutex_);
  children_.erase(child);
}

std::vector<Handle> Endpoint::children() const {
  const Lock guard(mutex_);
  return {children_.begin(), children_.end()};
}

// ---- connections ----

// Waits for the next connection: one that is established or, if the endpoint inspects requests, one
// that a peer asks for.
int Endpoint::wait_for_peer(Time deadline, std::shared_ptr<Connection>& out) {
  PageEvents events(backend_->page());
  for (;;) {
    const auto seen = events.wake_word()->load();
    if (ended()) return -ECANCELED;
    ask::Accept::Reply made{};
    Payload payload;
    const auto error = backend_->call(ask::Accept{.endpoint = id_}, made, payload);
    if (error == -EINVAL) return fail(error, "st_listen comes first");
    if (error != 0 && error != -EAGAIN) return error;
    if (error == 0) {
      const auto asked = made.facts.state == static_cast<std::uint32_t>(VcState::kAsked);
      out = std::make_shared<Connection>(shared_from_this(), made.channel, made.facts.mac, asked,
                                         std::move(payload.memory));
      const auto opened = out->wait_open(kNever);
      if (opened != 0) out->abandon();
      return opened;
    }
    const auto changed = [&] { return events.wake_word()->load() != seen || ended(); };
    if (const auto waited = wait_until(*backend_, events, deadline, changed); waited != 0)
      return waited;
  }
}

int Endpoint::hand_out(const std::shared_ptr<Connection>& connection, Handle& out) {
  const auto error = publish(connection, out);
  if (error != 0) connection->abandon();
  return error;
}

int Endpoint::accept(Handle& out) {
  for (;;) {
    std::shared_ptr<Connection> connection;
    if (const auto error = wait_for_peer(kNever, connection); error != 0) return error;
    if (config().inspect == 0 || connection->admit({}) == 0) return hand_out(connection, out);
    connection->abandon();  // the peer has given up meanwhile
  }
}

int Endpoint::inspect(Time deadline, Handle& out, VcFacts& peer) {
  if (config().inspect == 0) return fail(-EINVAL, "ST_OPT_INSPECT is set before st_listen");
  std::shared_ptr<Connection> connection;
  auto error = wait_for_peer(deadline, connection);
  if (error != 0) return error;
  error = connection->info(peer);
  if (error == 0) return hand_out(connection, out);
  connection->abandon();
  return error;
}

int Endpoint::connect(const Name& peer, const OptionPayload& option, Handle& out, VcFacts* answer) {
  if (connectionless_) return fail(-EOPNOTSUPP, "a connectionless endpoint does not connect");
  const auto wanted = config().connect_patience * kMillisecond;
  const auto patience = wanted != 0 ? wanted : kConnectPatience;
  Places places;
  if (const auto error = find_places(*backend_, peer.host, places); error != 0) return error;
  const Asked whom{places.station, peer.uport};
  if (places.all.empty()) return connect_to(whom, option, now() + patience, out, answer);
  put_answers_first(places.all);
  await_peer(*backend_, places, kNever, {});
  return connect_to_one_of(Tries(std::move(places)), whom.uport, option, patience, out, answer);
}

int Endpoint::connect_to(const Asked& whom, const OptionPayload& option, Time deadline, Handle& out,
                         VcFacts* answer) {
  std::shared_ptr<Connection> connection;
  const auto error = ask_for(whom, option, connection);
  return error != 0 ? error : await_answer(connection, whom.mac, deadline, nullptr, out, answer);
}

// Their time starts when the name is looked up, so that a slow resolver leaves time for the
// attempts; that of one address alone, when its station is known.
int Endpoint::connect_to_one_of(Tries tries, std::uint32_t uport, const OptionPayload& option,
                                Time patience, Handle& out, VcFacts* answer) {
  auto until = tries.has_news() ? now() + patience : kNever;
  int error = 0, silent = 0;
  do {
    MacAddr mac;
    tries.begin(now(), until);
    error = await_station(*backend_, tries.present(), {kNever, tries.ask_by()}, {}, mac);
    if (error != 0) {
      tries.give_up(describe(error));
    } else {
      if (until == kNever) until = now() + patience;
      tries.begin(now(), until);
      std::shared_ptr<Connection> connection;
      if (const auto failed = ask_for({mac, uport}, option, connection); failed != 0) return failed;
      error = await_answer(connection, mac, tries.limit(), &tries, out, answer);
    }
    if (error == -ECONNREFUSED && tries.has_news())
      return fail(error, std::strerror(ECONNREFUSED) + ("; " + tries.text()));
    if (!Tries::is_of_address(error)) return error;
    if (error == -ETIMEDOUT) silent = error;
  } while (!tries.is_over() && now() < until);
  if (!tries.has_news()) return error;
  const auto hint = tries.any_silent() ? hint_at_firewalls(*backend_) : "";
  const std::string what =
      silent != 0 ? "nobody answered in time; " : "no address can be reached; ";
  return fail(silent != 0 ? silent : error, what + tries.text() + hint);
}

// Asks the station for a connection. An error is that of the service, not of the peer.
int Endpoint::ask_for(const Asked& whom, const OptionPayload& option,
                      std::shared_ptr<Connection>& out) {
  const ask::Connect asking{.endpoint = id_,
                            .mac = whom.mac.to_u64(),
                            .uport = whom.uport,
                            .option = ipc::to_wire(option)};
  ask::Connect::Reply made{};
  Payload payload;
  if (const auto error = backend_->call(asking, made, payload); error != 0) return error;
  out = std::make_shared<Connection>(shared_from_this(), made.channel, asking.mac, false,
                                     std::move(payload.memory));
  return 0;
}

// Waits for the peer until `deadline` at the longest. `tries`: has others, so reports that it is
// gone count, and the end is noted there.
int Endpoint::await_answer(const std::shared_ptr<Connection>& connection, const MacAddr& mac,
                           Time deadline, Tries* tries, Handle& out, VcFacts* answer) {
  auto error = 0;
  bool is_gone = false;
  for (auto look_at = kNever;;) {
    if (tries != nullptr) look_at = tries->look_at();
    error = connection->wait_open(std::min(deadline, look_at));
    if (error != -ETIMEDOUT || now() < look_at || now() >= deadline) break;
    is_gone = is_reported_gone(*backend_, mac);
    if (is_gone) break;
    tries->looked(now());
  }
  const bool answered = error == 0 || error == -ECONNREFUSED;
  if (answered) station_answers(mac, now());
  if (answered && answer != nullptr) connection->info(*answer);
  if (answered && tries != nullptr) tries->answered(error == 0 ? "" : "refused");
  if (error == 0) return hand_out(connection, out);
  if (tries != nullptr && Tries::is_of_address(error)) {
    const auto why = trouble_of(*backend_, mac);
    is_gone ? tries->give_up_for_now(why) : tries->give_up(why);
  }
  connection->abandon();
  return error;
}

bool Endpoint::take_end(Occurrence& out) const {
  for (const auto child : children())
    if (const auto connection = find<Connection>(child); connection) {
      out = {child, connection->take_end()};
      if (out.reason != 0) return true;
    }
  return false;
}

int Endpoint::backlog(std::uint64_t& out) const {
  ask::Backlog::Reply reply{};
  const auto error = backend_->call(ask::Backlog{.endpoint = id_}, reply);
  out = reply.waiting;
  return error;
}

int Endpoint::next_occurrence(Time deadline, Occurrence& out) {
  PageEvents events(backend_->page());
  for (;;) {
    const auto seen = events.wake_word()->load();
    if (ended()) return -ECANCELED;
    if (take_end(out)) return 0;
    out = {};
    std::uint64_t waiting = 0;
    if (listening_)
      if (const auto error = backlog(waiting); error != 0) return error;
    if (waiting != 0) return 0;
    const auto changed = [&] { return events.wake_word()->load() != seen || ended(); };
    if (const auto waited = wait_until(*backend_, events, deadline, changed); waited != 0)
      return waited;
  }
}

int Endpoint::flush() {
  int first_error = 0;
  for (const auto child : children())
    if (const auto connection = find<Connection>(child); connection) {
      const auto error = connection->flush();
      if (first_error == 0) first_error = error;
    }
  return first_error;
}

// ---- memory ----

int Endpoint::map(Direction direction, std::vector<MutableBytes> memory, std::uint32_t base,
                  Handle& out, std::uint16_t* mx) {
  if (Handle port = 0; connectionless_)
    if (const auto error = open_port(port); error != 0) return error;
  ask::Map asking{};
  asking.endpoint = id_;
  asking.direction = static_cast<std::uint32_t>(direction);
  asking.base = base;
  Payload payload;
  std::size_t bytes = 0;
  for (const auto piece : memory) bytes += piece.size();
  payload.mapped = std::move(memory);
  ask::Map::Reply made{};
  if (const auto error = backend_->call(asking, made, payload); error != 0) return error;
  const auto count = static_cast<std::uint32_t>(bytes >> config().bufsize);
  mappings_.add(made.region, direction, {base, count});
  const auto region =
      std::make_shared<Region>(shared_from_this(), made.region, direction, std::move(payload.keep));
  auto error = mx != nullptr ? region->allocate_mx(kNoneId, *mx) : 0;
  if (error == 0) error = publish(region, out);
  if (error != 0) region->unmap();
  return error;
}

// ---- the end ----

int Endpoint::begin_end(Closing& closing) {
  {
    const Lock guard(mutex_);
    if (ended_.exchange(true)) return -EBADF;
  }
  wake_all(backend_->page().events);
  for (const auto child : children())
    if (auto connection = find<Connection>(child); connection) {
      int sent = 0;
      const auto error = connection->begin_close(sent);
      if (error == 0) closing.push_back({connection.share(), child, sent != 0});
      if (error == -EINTR) return go_on(closing), error;
    }
  return 0;
}

void Endpoint::go_on(const Closing& closing) {
  for (const auto& each : closing) each.connection->go_on();
  ended_ = false;
}

void Endpoint::end(const Closing& closing) {
  for (const auto& each : closing) {
    retire<Connection>(each.handle);
    each.connection->close(each.at_once);
  }
  const auto deadline = now() + Connection::kClosePatience;
  for (const auto& each : closing) each.connection->end_close(deadline);
  for (const auto child : children())
    if (const auto region = retire<Region>(child); region) region->unmap();
}

// ---- region

int Region::allocate_mx(VcId vc, std::uint16_t& out) {
  // All rights: the CTS or MRA that the user sends decides what the peer may do.
  constexpr std::uint32_t kAll = permit::kData | permit::kGet | permit::kFetchOp;
  const ask::AllocMx request{.region = id_, .vc = vc, .permissions = kAll, .reserved = 0};
  ask::AllocMx::Reply reply{};
  if (const auto error = endpoint_->backend().call(request, reply); error != 0) return error;
  out = static_cast<std::uint16_t>(reply.mx);
  endpoint_->mappings().add_mx(out, id_, vc);
  return 0;
}

int Region::unmap() {
  constexpr Time kInterval = 100 * kMicrosecond;
  auto& backend = endpoint_->backend();
  endpoint_->forget(handle_);
  endpoint_->mappings().remove(id_);
  for (;;) {
    const auto error = backend.call(ask::Unmap{.region = id_});
    if (error != -EINPROGRESS) return error;
    pause(backend, kInterval);
  }
}

}  // namespace stp::client
