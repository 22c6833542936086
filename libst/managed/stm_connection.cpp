// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: connections, and what is posted on them.
#include <limits>

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
using stp::managed::Memory;
using stp::managed::Operation;
using stp::managed::Outlets;
using stp::managed::Pieces;
using stp::managed::Pool;
using stp::managed::PostedReceive;
using stp::managed::Queue;
using stp::managed::QueueUse;
using namespace stp::managed::api;

namespace {

// Finds the queues that `attr` names. The caller holds the domain's mutex. Returns 0 or a negative
// errno.
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
  constexpr unsigned kFlags = STM_ON_ARRIVAL | STM_FRUGAL | STM_PATIENT;
  if ((attr.flags & ~kFlags) != 0 || attr.reserved != 0)
    return fail(-EINVAL, "flags of the attributes has unknown bits");
  out.context = attr.context;
  out.group = attr.group;
  out.on_arrival = (attr.flags & STM_ON_ARRIVAL) != 0;
  out.frugal = (attr.flags & STM_FRUGAL) != 0;
  out.patient = (attr.flags & STM_PATIENT) != 0;
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

// ---- receives and operations ----

namespace stp::managed::api {

[[gnu::noinline]] int what_is_wrong(const Memory* memory, bool given, const void* ptr,
                                    std::size_t length) {
  if (!given) return missing("memory");
  if (memory == nullptr) return -EBADF;
  if (!memory->contains(ptr, length)) return fail(-EINVAL, "these bytes are not in the memory");
  return fail(-EACCES, "the memory was not registered with STM_LOCAL_WRITE");
}

[[gnu::noinline]] int other_domain() {
  return fail(-EINVAL, "the memory is of another domain");
}

}  // namespace stp::managed::api

namespace {

constexpr unsigned kAllFlags = STM_QUIET | STM_FENCE | STM_URGENT | STM_LAZY;
constexpr std::size_t kWord = 8;

// Posts what has been filled in. The caller holds the domain's mutex.
int post(Connection& connection, Operation& draft, stm_memory_t memory, bool written) {
  if ((draft.flags & ~kAllFlags) != 0) return fail(-EINVAL, "flags has unknown bits");
  auto& domain = *connection.domain();
  domain.mutex().is_held();
  const bool given = memory != nullptr;
  if (given) draft.memory = domain.find_memory(reinterpret_cast<stp::client::Handle>(memory));
  if (given && draft.memory == nullptr && find<Memory>(memory)) return other_domain();
  if (const auto error = check_part(draft.memory, given, draft.ptr, draft.length, written);
      error != 0)
    return error;
  return connection.post();
}

// What all operations have.
struct Posting {
  Operation::Kind kind;
  std::uint64_t context;
  unsigned flags;
  stm_memory_t memory;
  const void* ptr;
  std::size_t length;
  bool written;
};

// `fill` adds what is peculiar to one. Runs once per operation, so it is one function.
template <typename Fill>
[[gnu::always_inline]] inline int post(Connection& connection, const Posting& posting,
                                       const Fill& fill) {
  auto& draft = connection.draft();
  draft.clear();
  draft.kind = posting.kind;
  draft.flags = posting.flags;
  draft.context = posting.context;
  draft.ptr = const_cast<void*>(posting.ptr);  // written to only after a check that this is allowed
  draft.length = posting.length;
  fill(draft);
  return post(connection, draft, posting.memory, posting.written);
}

template <typename Fill>
[[gnu::flatten]] int post(stm_connection_t handle, const Posting& posting, const Fill& fill) {
  const auto connection = find<Connection>(handle);
  if (!connection) return -EBADF;
  const stp::Lock guard(connection->domain()->mutex());
  return post(*connection, posting, fill);
}

int not_empty(std::size_t length) {
  return length != 0 ? 0 : fail(-EINVAL, "length must not be 0");
}

// Posts one operation of a list.
int post_listed(Connection& connection, const stm_operation_t& wanted) {
  using Kind = Operation::Kind;
  if (wanted.reserved != 0) return fail(-EINVAL, "reserved is not 0");
  auto kind = Kind::kPut;
  bool written = false;
  switch (wanted.kind) {
    case STM_SEND:
      kind = Kind::kSend;
      break;
    case STM_PUT:
      break;
    case STM_READ:
    case STM_GET:
      if (const auto error = not_empty(wanted.length); error != 0) return error;
      kind = wanted.kind == STM_READ ? Kind::kRead : Kind::kGet;
      written = true;
      break;
    default:
      return fail(-EINVAL, "kind is none of STM_SEND, STM_READ, STM_PUT and STM_GET");
  }
  return post(
      connection,
      {kind, wanted.context, wanted.flags, wanted.memory, wanted.ptr, wanted.length, written},
      [&](Operation& draft) {
        draft.tag = wanted.tag;
        draft.key = wanted.key;
        draft.address = wanted.address;
      });
}

}  // namespace

int stm_receive(stm_connection_t connection, uint64_t context, stm_memory_t memory, void* ptr,
                size_t length) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    return post_receive(
        *found, context, memory, ptr, length,
        [&](Domain&, PostedReceive&& receive) { return found->post_receive(std::move(receive)); });
  });
}

int stm_set_watermark(stm_connection_t connection, uint64_t receives) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->set_watermark(receives);
  });
}

int stm_send(stm_connection_t connection, uint64_t context, unsigned flags, uint32_t tag,
             stm_memory_t memory, const void* ptr, size_t length) {
  return guarded([&] {
    return post(connection, {Operation::Kind::kSend, context, flags, memory, ptr, length, false},
                [&](Operation& draft) { draft.tag = tag; });
  });
}

int stm_send_short(stm_connection_t connection, uint64_t context, unsigned flags, uint32_t tag,
                   const void* head, size_t head_length, const struct iovec* parts, size_t count) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if ((flags & ~kAllFlags) != 0) return fail(-EINVAL, "flags has unknown bits");
    if (head_length > STM_HEAD) return fail(-EINVAL, "head_length is more than STM_HEAD");
    if (head == nullptr && head_length != 0) return missing("head");
    if (parts == nullptr && count != 0) return missing("parts");
    const Pieces bytes{head, head_length, {parts, count}};
    if (bytes.lacks_some()) return missing("parts[].iov_base");
    const auto length = bytes.length();
    if (length > stp::managed::eager_most(stp::managed::kEagerSpan))
      return fail(-EMSGSIZE, "a message of that length never begins at once");
    const stp::Lock guard(found->domain()->mutex());
    auto& draft = found->draft();
    draft.clear();
    draft.kind = Operation::Kind::kSend;
    draft.ptr = nullptr;
    draft.flags = flags;
    draft.context = context;
    draft.length = length;
    draft.tag = tag;
    return found->send_at_once(bytes);
  });
}

int stm_read(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
             void* ptr, size_t length) {
  return guarded([&] {
    if (const auto error = not_empty(length); error != 0) return error;
    return post(connection, {Operation::Kind::kRead, context, flags, memory, ptr, length, true},
                [](Operation&) {});
  });
}

int stm_serve_read(stm_connection_t connection, uint32_t request, uint64_t context, unsigned flags,
                   stm_memory_t memory, const void* ptr, size_t length) {
  return guarded([&] {
    return post(connection, {Operation::Kind::kServe, context, flags, memory, ptr, length, false},
                [&](Operation& draft) { draft.request = request; });
  });
}

int stm_refuse_read(stm_connection_t connection, uint32_t request) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->refuse_read(request);
  });
}

int stm_put(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
            const void* ptr, size_t length, uint32_t key, uint64_t address) {
  return guarded([&] {
    return post(connection, {Operation::Kind::kPut, context, flags, memory, ptr, length, false},
                [&](Operation& draft) {
                  draft.key = key;
                  draft.address = address;
                });
  });
}

int stm_get(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
            void* ptr, size_t length, uint32_t key, uint64_t address) {
  return guarded([&] {
    if (const auto error = not_empty(length); error != 0) return error;
    return post(connection, {Operation::Kind::kGet, context, flags, memory, ptr, length, true},
                [&](Operation& draft) {
                  draft.key = key;
                  draft.address = address;
                });
  });
}

int stm_post_list(stm_connection_t connection, const stm_operation_t* operations, size_t count) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if (operations == nullptr && count != 0) return missing("operations");
    if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return fail(-EINVAL, "count is more than INT_MAX");
    auto& domain = *found->domain();
    const stp::Lock guard(domain.mutex());
    Domain::PostingList list(domain);
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto error = post_listed(*found, operations[i]); error != 0)
        return i != 0 ? static_cast<int>(i) : error;
      list.posted(operations[i].length);
    }
    return static_cast<int>(count);
  });
}

int stm_fetch(stm_connection_t connection, uint64_t context, unsigned flags, enum stm_fetch_op op,
              uint64_t operand, uint64_t compare, stm_memory_t memory, void* ptr, uint32_t key,
              uint64_t address) {
  return guarded([&] {
    if (op < STM_FETCH_INCREMENT || op > STM_COMPARE_AND_SWAP)
      return fail(-EINVAL, "op is none of enum stm_fetch_op");
    if (reinterpret_cast<std::uintptr_t>(ptr) % kWord != 0)
      return fail(-EINVAL, "ptr is not aligned to 8 bytes");
    return post(connection, {Operation::Kind::kFetch, context, flags, memory, ptr, kWord, true},
                [&](Operation& draft) {
                  draft.function = static_cast<stp::wire::Function>(op);
                  draft.operands = {.operand = operand, .compare = compare};
                  draft.key = key;
                  draft.address = address;
                });
  });
}

int stm_cancel(stm_connection_t connection, uint64_t context) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->cancel(context);
  });
}

int stm_withdraw(stm_connection_t connection, uint64_t context) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->withdraw(context);
  });
}
