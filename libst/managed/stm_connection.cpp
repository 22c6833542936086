// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: connections.
#include "libst/client/answers.h"
#include "libst/client/links.h"
#include "libst/client/names.h"
#include "libst/managed/api.h"
#include "libst/managed/listener.h"

using stp::client::Handle;
using stp::client::Name;
using stp::client::Tries;
using stp::managed::Connection;
using stp::managed::Domain;
using stp::managed::Hello;
using stp::managed::Listener;
using stp::managed::Outlets;
using stp::managed::Pool;
using stp::managed::Queue;
using stp::managed::QueueUse;
using namespace stp::managed::api;

namespace stp::managed::api {

// The caller holds the domain's mutex.
int find_outlets(Domain& domain, const stm_connection_attr_t& attr, Outlets& out) {
  const auto of = [&](stm_queue_t handle, QueueUse& use) {
    const auto queue = find<Queue>(handle);
    if (!queue) return -EBADF;
    if (&queue->domain() != &domain) return fail(-EINVAL, "the queue is of another domain");
    use = QueueUse(queue.share());
    return 0;
  };
  if (attr.events == nullptr) return missing("events");
  const auto sends = attr.sends != nullptr ? attr.sends : attr.events;
  const auto receives = attr.receives != nullptr ? attr.receives : sends;
  auto error = of(attr.events, out.events);
  if (error == 0) error = of(sends, out.sends);
  if (error == 0) error = of(receives, out.receives);
  if (error != 0) return error;
  constexpr unsigned kFlags = STM_ON_ARRIVAL | STM_FRUGAL;
  if ((attr.flags & ~kFlags) != 0 || attr.reserved != 0)
    return fail(-EINVAL, "flags of the attributes has unknown bits");
  out.context = attr.context;
  out.group = attr.group;
  out.on_arrival = (attr.flags & STM_ON_ARRIVAL) != 0;
  out.frugal = (attr.flags & STM_FRUGAL) != 0;
  if (attr.receive_wait > 0) out.receive_wait = duration(attr.receive_wait);
  if (attr.pool == nullptr) return 0;
  const auto pool = find<Pool>(attr.pool);
  if (!pool) return -EBADF;
  if (pool->domain().get() != &domain) return fail(-EINVAL, "the pool is of another domain");
  out.pool = pool.share();
  return 0;
}

int read_private_data(const void* data, std::size_t length, Hello& out) {
  if (length > STM_PRIVATE_DATA)
    return fail(-EINVAL, "more private data than STM_PRIVATE_DATA bytes");
  if (length != 0 && data == nullptr) return missing("private_data");
  const auto* const bytes = static_cast<const std::byte*>(data);
  out.private_data.assign(bytes, bytes + length);
  return 0;
}

}  // namespace stp::managed::api

namespace {

constexpr std::int64_t kUsualPatience = 30'000'000;

stp::Time silent_by() {
  return stp::client::now() + stp::managed::Handshake::kSilence;
}

// When a connection attempt ends.
Connection::Wanted wanted_in(std::int64_t timeout) {
  Connection::Wanted wanted;
  if (timeout >= 0) {
    wanted.deadline = deadline_of(timeout);
    return wanted;
  }
  wanted.silent = silent_by();
  if (timeout != STM_WHILE_ALIVE) wanted.deadline = deadline_of(kUsualPatience);
  return wanted;
}

constexpr unsigned kUsualBacklog = 64;

int no_places() {
  return fail(-EAGAIN, "the events queue lacks the two places that a connection reserves");
}

// Starts to open the Virtual Connection. The answer comes later.
int begin(Connection& connection, Connection::Wanted wanted, Hello hello) {
  auto& domain = *connection.domain();
  stp::Lock guard(domain.mutex());
  while (!domain.staging().has_free()) {  // another thread may take what is provided
    guard.unlock();
    if (const auto error = domain.provide_staging(); error != 0) return error;
    guard.lock();
  }
  if (!connection.is_new())
    return fail(-EISCONN, "the connection was connected before: create a new one");
  const auto staging = domain.staging().take();
  if (const auto error = connection.connect(std::move(wanted), staging, std::move(hello));
      error != 0) {
    domain.staging().give_back(staging);
    return error;
  }
  domain.look_before(domain.now());
  return 0;
}

// The first station of the host that there is, with the addresses from there on.
int find_station(stp::client::Backend& backend, stp::client::Places places,
                 const std::function<bool()>& closed, Connection::Wanted& out) {
  out.mac = places.station;
  if (places.all.empty()) return 0;
  auto tries = std::make_unique<Tries>(std::move(places));
  const auto until = std::min(out.silent, out.deadline);
  int error = 0;
  do {
    tries->begin(stp::client::now(), until);
    error = stp::client::await_station(backend, tries->present(), {out.deadline, tries->ask_by()},
                                       closed, out.mac);
    if (!Tries::is_of_address(error)) break;
    tries->give_up(stp::client::describe(error));
  } while (!tries->is_over() && stp::client::now() < until);
  const bool has_news = tries->has_news();
  if (error == 0 && has_news) out.others = std::move(tries);
  if (error == -ECANCELED) return fail(error, "the connection has been closed meanwhile");
  if (!Tries::is_of_address(error)) return error;
  return fail(-EHOSTUNREACH, has_news ? "no station answers; " + tries->text()
                                      : std::string(stp::client::describe(error)));
}

}  // namespace

int stm_connection_create(stm_domain_t domain, const stm_connection_attr_t* given,
                          stm_connection_t* connection) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    if (given == nullptr) return missing("attr");
    if (connection == nullptr) return missing("connection");
    stm_connection_attr_t attr;
    if (const auto error = read_attributes(given, attr); error != 0) return error;
    const auto made = std::make_shared<Connection>(found.share());
    {
      const stp::Lock guard(found->mutex());
      Outlets outlets;
      if (const auto error = find_outlets(*found, attr, outlets); error != 0) return error;
      if (made->set_outlets(std::move(outlets)) != 0) return no_places();
    }
    const auto error = publish(*found, made, connection);
    const stp::Lock guard(found->mutex());
    if (error != 0)
      made->abandon();
    else
      made->set_handle(reinterpret_cast<Handle>(*connection));
    return error;
  });
}

int stm_connect(stm_connection_t connection, const char* peer, int64_t timeout,
                const void* private_data, size_t length) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if (peer == nullptr) return missing("peer");
    if (timeout < STM_WHILE_ALIVE)
      return fail(-EINVAL, "timeout is negative, and neither -1 nor STM_WHILE_ALIVE");
    Name name;
    Hello hello;
    if (const auto error = stp::client::parse_name(peer, name); error != 0) return error;
    if (const auto error = read_private_data(private_data, length, hello); error != 0) return error;
    auto wanted = wanted_in(timeout);
    wanted.uport = name.uport;
    auto& backend = found->domain()->backend();
    stp::client::Places places;
    auto error = stp::client::find_places(backend, name.host, places);
    const auto closed = [connection] { return !find<Connection>(connection); };
    stp::client::put_answers_first(places.all);
    if (error == 0) stp::client::await_peer(backend, places, wanted.deadline, closed);
    // A slow resolver, and a link whose other side is opened late, leave time for the attempts.
    if (wanted.silent != stp::kNever) wanted.silent = silent_by();
    if (error == 0) error = find_station(backend, std::move(places), closed, wanted);
    return error != 0 ? error : begin(*found, std::move(wanted), std::move(hello));
  });
}

int stm_listen(stm_domain_t domain, const char* port, stm_queue_t queue, uint64_t context,
               unsigned backlog, stm_listener_t* listener) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    const auto events = find<Queue>(queue);
    if (!found || !events) return -EBADF;
    if (port == nullptr) return missing("port");
    if (listener == nullptr) return missing("listener");
    if (&events->domain() != &*found) return fail(-EINVAL, "the queue is of another domain");
    Name name;
    if (const auto error = stp::client::parse_name(port, name); error != 0) return error;
    if (const auto error = stp::client::check_own(found->backend(), name.host); error != 0)
      return error;
    const auto made =
        std::make_shared<Listener>(found.share(), context, backlog != 0 ? backlog : kUsualBacklog);
    const stp::Lock control(found->control_mutex());
    if (found->closed()) return -EBADF;
    if (const auto error = made->listen(name.uport); error != 0) return error;
    const auto error = publish(*found, made, listener);
    if (error != 0) {
      made->close();
      return error;
    }
    const stp::Lock guard(found->mutex());
    made->use(events.share());
    found->activate(made);
    found->look_for_connections();
    return 0;
  });
}

int stm_listener_close(stm_listener_t listener) {
  return guarded([&] {
    const auto closing = retire<Listener>(listener);
    if (!closing) return -EBADF;
    auto& domain = *closing->domain();
    const stp::Lock control(domain.control_mutex());
    {
      const stp::Lock guard(domain.mutex());
      domain.forget(reinterpret_cast<Handle>(listener));
    }
    closing->close();
    return 0;
  });
}

int stm_accept(stm_connection_t connection, const stm_connection_attr_t* given,
               const void* private_data, size_t length) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if (given == nullptr) return missing("attr");
    stm_connection_attr_t attr;
    Hello hello{Hello::Kind::kAccept, {}};
    if (const auto error = read_attributes(given, attr); error != 0) return error;
    if (const auto error = read_private_data(private_data, length, hello); error != 0) return error;
    auto& domain = *found->domain();
    const stp::Lock guard(domain.mutex());
    Outlets outlets;
    if (const auto error = find_outlets(domain, attr, outlets); error != 0) return error;
    const auto error = found->accept(std::move(outlets), hello);
    domain.look_before(*found);
    return error == -EAGAIN ? no_places() : error;
  });
}

int stm_reject(stm_connection_t connection, const void* private_data, size_t length) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    Hello hello{Hello::Kind::kReject, {}};
    if (const auto error = read_private_data(private_data, length, hello); error != 0) return error;
    auto& domain = *found->domain();
    const stp::Lock guard(domain.mutex());
    if (const auto error = found->reject(hello); error != 0) return error;
    domain.look_before(*found);
    if (!retire<Connection>(connection)) return -EBADF;
    domain.forget(reinterpret_cast<Handle>(connection));
    return 0;
  });
}

int stm_private_data(stm_connection_t connection, void* data, size_t size) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if (size != 0 && data == nullptr) return missing("data");
    const stp::Lock guard(found->domain()->mutex());
    const auto& there = found->private_data();
    if (size != 0 && !there.empty()) std::memcpy(data, there.data(), std::min(size, there.size()));
    return static_cast<int>(there.size());
  });
}

int stm_disconnect(stm_connection_t connection, int how) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if (how < STM_GRACEFUL || how > STM_BROKEN)
      return fail(-EINVAL, "how must be STM_GRACEFUL, STM_ABRUPT or STM_BROKEN");
    const stp::Lock guard(found->domain()->mutex());
    const auto why =
        how == STM_BROKEN ? stp::managed::Farewell::kBroken : stp::managed::Farewell::kNone;
    return found->disconnect(how != STM_GRACEFUL, why);
  });
}

int stm_connection_close(stm_connection_t connection) {
  return guarded([&] {
    const auto closing = retire<Connection>(connection);
    if (!closing) return -EBADF;
    auto& domain = *closing->domain();
    stp::Lock guard(domain.mutex());
    domain.forget(reinterpret_cast<Handle>(connection));
    closing->abandon();
    // When this call returns, the program may destroy the connection's queues and free its memory.
    while (closing->ending()) {
      constexpr stp::Time kInterval = 100 * stp::kMicrosecond;
      guard.without([&] { stp::client::pause(domain.backend(), kInterval); });
      closing->go_on_ending();
    }
    return 0;
  });
}

int stm_connection_query(stm_connection_t connection, stm_connection_info_t* info) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    stm_connection_info_t known{};
    const stp::Lock guard(found->domain()->mutex());
    found->query(known);
    return write_info(known, info);
  });
}

int stm_peer_query(stm_connection_t connection, stm_peer_info_t* info) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    stm_peer_info_t known{};
    stp::MacAddr peer;
    std::string trouble;
    {
      const stp::Lock guard(found->domain()->mutex());
      peer = found->peer_mac();
      trouble = found->tried();
      found->peer_name().copy(known.address, sizeof known.address - 1);
    }
    if (peer.is_zero()) return fail(-ENOTCONN, "the connection has no peer yet");
    if (trouble.empty()) trouble = stp::client::trouble_of(found->domain()->backend(), peer);
    trouble.copy(known.trouble, sizeof known.trouble - 1);
    return write_info(known, info);
  });
}
