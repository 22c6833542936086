// SPDX-License-Identifier: BSD-3-Clause
// The C API: endpoints, options, addresses, connections (libst document, sections 5 to 8), option
// payload on their way (Appendix A), and calls that concern no object.
#include <chrono>
#include <cstring>

#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "libst/client/wait.h"
#include "libst/include/stp/st.h"

using stp::MacAddr;
using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::fail;
using stp::client::find;
using stp::client::guarded;
using stp::client::guarded_per_frame;
using stp::client::Handle;
using stp::client::Name;
using stp::client::not_set;
using stp::client::OptionRule;
using stp::ipc::VcFacts;

int stp::client::make_endpoint(const char* str, bool connectionless, st_ehandle_t* out) {
  if (out == nullptr) return not_set("ehandle");
  auto& table = HandleTable::instance();
  if (table.inherited())
    return fail(-EBADF,
                "libst does not work in a child of fork() whose parent has used it: fork first, or "
                "call exec()");
  std::optional<Name> name;
  if (str != nullptr) {
    name.emplace();
    if (const auto error = parse_name(str, *name); error != 0) return error;
    if (connectionless && name->uport > wire::kMaxPort)
      return fail(-EINVAL, "port " + std::to_string(name->uport) +
                               ": without connections it is an STP Port, 1 to 65535");
  }
  std::shared_ptr<Endpoint> endpoint;
  if (const auto error = Endpoint::open(name, connectionless, endpoint); error != 0) return error;
  const auto handle = table.add(Endpoint::kKind, std::move(endpoint));
  if (handle == 0) return fail(-EMFILE, "too many handles");
  *out = reinterpret_cast<st_ehandle_t>(handle);
  return 0;
}

namespace {

int remote_of_endpoint() {
  return fail(-ENOTCONN, "options of the remote side need a connection, not an endpoint");
}

// The object and the option that the arguments of st_getopt and st_setopt name. `error` is 0 if
// both exist.
struct OptionTarget {
  OptionTarget(void* handle, int option, const void* value)
      : endpoint(find<Endpoint>(handle)),
        connection(find<Connection>(handle)),
        rule(stp::client::find_option(option)) {
    if (!endpoint && !connection)
      error = -EBADF;
    else if (value == nullptr)
      error = stp::client::not_set("val");
    else if (rule == nullptr)
      error = fail(-EINVAL, "there is no option " + std::to_string(option));
  }
  stp::client::Ref<Endpoint> endpoint;
  stp::client::Ref<Connection> connection;
  const OptionRule* rule;
  int error = 0;
};

// Values that were settled when the connection was made come from it, others from its endpoint.
int get_of_connection(const Connection& connection, const OptionRule& rule, std::uint32_t& value) {
  if (rule.connection == nullptr) {
    value = connection.endpoint().get_option(rule);
    return 0;
  }
  VcFacts facts{};
  if (const auto error = connection.info(facts); error != 0) return error;
  value = facts.*rule.connection;
  return 0;
}

}  // namespace

int st_create(const char* str, st_ehandle_t* ehandle) {
  return guarded([&] { return stp::client::make_endpoint(str, false, ehandle); });
}

int st_delete(st_ehandle_t ehandle) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    Endpoint::Closing closing;
    if (const auto error = endpoint->begin_end(closing); error != 0) return error;
    stp::client::retire<Endpoint>(reinterpret_cast<Handle>(ehandle));
    endpoint->end(closing);
    return 0;
  });
}

int st_getopt(void* handle, int opt, void* val) {
  return guarded([&] {
    OptionTarget const target(handle, opt, val);
    if (target.error != 0) return target.error;
    auto& value = *static_cast<unsigned*>(val);
    if (target.connection) return get_of_connection(*target.connection, *target.rule, value);
    if (target.rule->remote()) return remote_of_endpoint();
    if (target.endpoint->connectionless())
      return target.endpoint->get_connectionless(*target.rule, value);
    value = target.endpoint->get_option(*target.rule);
    return 0;
  });
}

int st_setopt(void* handle, int opt, void* val) {
  return guarded([&] {
    OptionTarget const target(handle, opt, val);
    if (target.error != 0) return target.error;
    const auto value = *static_cast<const unsigned*>(val);
    if (const auto error = stp::client::check_option(*target.rule, value); error != 0) return error;
    if (target.connection)
      return fail(-EBUSY, "options must be set on the endpoint, before the connection is made");
    return target.endpoint->set_option(*target.rule, value);
  });
}

int st_macaddr(st_ehandle_t ehandle, const char* hostname, st_macaddr_t* macaddr) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (macaddr == nullptr) return stp::client::not_set("macaddr");
    stp::client::Host host;
    auto error = hostname != nullptr ? stp::client::parse_host(hostname, host) : 0;
    MacAddr mac;
    if (error == 0) error = stp::client::resolve(endpoint->backend(), host, mac);
    if (error == 0) *macaddr = mac.to_u64();
    if (error == -ETIMEDOUT) return fail(-EHOSTUNREACH, stp::client::describe(error));
    return error;
  });
}

// ---- connections ----

namespace {

stp::OptionPayload option_of(const void* given) {
  if (given == nullptr) return {};
  return stp::to_option({static_cast<const std::byte*>(given), ST_OPTION_SIZE});
}

void tell(const VcFacts& told, st_peer_t& peer) {
  peer = {};
  peer.macaddr = told.mac;
  peer.uport = told.peer_uport;
  peer.opt_len = told.option.length;
  std::memcpy(peer.opt_pay, told.option.bytes, sizeof peer.opt_pay);
}

int connect(st_ehandle_t ehandle, const char* peer, const void* opt_pay, st_chandle_t* chandle,
            st_peer_t* answer) {
  const auto endpoint = find<Endpoint>(ehandle);
  if (!endpoint) return -EBADF;
  if (peer == nullptr) return not_set("peer");
  if (chandle == nullptr) return not_set("chandle");
  Name name;
  if (const auto error = stp::client::parse_name(peer, name); error != 0) return error;
  Handle handle = 0;
  VcFacts told{};
  const auto error =
      endpoint->connect(name, option_of(opt_pay), handle, answer != nullptr ? &told : nullptr);
  if (answer != nullptr) tell(told, *answer);
  if (error == 0) *chandle = reinterpret_cast<st_chandle_t>(handle);
  return error;
}

}  // namespace

int st_listen(st_ehandle_t ehandle) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    return endpoint ? endpoint->listen() : -EBADF;
  });
}

int st_accept(st_ehandle_t ehandle, st_chandle_t* chandle) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (chandle == nullptr) return not_set("chandle");
    Handle handle = 0;
    if (const auto error = endpoint->accept(handle); error != 0) return error;
    *chandle = reinterpret_cast<st_chandle_t>(handle);
    return 0;
  });
}

int st_connect(st_ehandle_t ehandle, const char* peer, st_chandle_t* chandle) {
  return guarded([&] { return connect(ehandle, peer, nullptr, chandle, nullptr); });
}

int st_connect_opt(st_ehandle_t ehandle, const char* peer, const void* opt_pay,
                   st_chandle_t* chandle, st_peer_t* answer) {
  return guarded([&] { return connect(ehandle, peer, opt_pay, chandle, answer); });
}

int st_inspect(st_ehandle_t ehandle, st_chandle_t* chandle, st_peer_t* peer,
               struct timeval* timeout) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (chandle == nullptr) return not_set("chandle");
    stp::Time deadline = 0;
    if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
    Handle handle = 0;
    VcFacts told{};
    if (const auto error = endpoint->inspect(deadline, handle, told); error != 0) return error;
    if (peer != nullptr) tell(told, *peer);
    *chandle = reinterpret_cast<st_chandle_t>(handle);
    return 0;
  });
}

int st_accept_opt(st_chandle_t chandle, const void* opt_pay) {
  return guarded([&] {
    const auto connection = find<Connection>(chandle);
    return connection ? connection->admit(option_of(opt_pay)) : -EBADF;
  });
}

int st_reject(st_chandle_t chandle, const void* opt_pay) {
  return guarded([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    if (const auto error = connection->reject(option_of(opt_pay)); error != 0) return error;
    const auto retired = stp::client::retire<Connection>(reinterpret_cast<Handle>(chandle));
    if (retired) retired->forget();
    return 0;
  });
}

int st_getpeer(st_chandle_t chandle, st_peer_t* peer) {
  return guarded([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    if (peer == nullptr) return not_set("peer");
    VcFacts told{};
    const auto error = connection->info(told);
    if (error == 0) tell(told, *peer);
    return error;
  });
}

int st_next_event(st_ehandle_t ehandle, st_event_t* event, struct timeval* timeout) {
  return guarded_per_frame([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (event == nullptr) return not_set("event");
    stp::Time deadline = 0;
    if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
    Endpoint::Occurrence what;
    const auto error = endpoint->next_occurrence(deadline, what);
    if (error != 0) return error;
    const auto gone = what.reason == -ENOTCONN ? ST_EVENT_PEER_GONE : ST_EVENT_FAILED;
    *event = {.kind = what.connection == 0 ? ST_EVENT_CONNECTION : gone,
              .chandle = reinterpret_cast<st_chandle_t>(what.connection),
              .error = what.reason};
    return 0;
  });
}

int st_close(st_chandle_t chandle) {
  return guarded([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    int sent = 0;
    const auto begun = connection->begin_close(sent);
    const bool is_left = begun == -EINTR && connection->goes_with_endpoint();
    if (begun != 0 && !is_left) return begun;
    if (is_left) sent = -ECANCELED;
    stp::client::retire<Connection>(reinterpret_cast<Handle>(chandle));
    std::optional<stp::client::KeepFailure> keep;
    if (sent != 0) keep.emplace();
    const auto error = connection->close(sent != 0);
    if (error == 0) connection->end_close(stp::client::now() + Connection::kClosePatience);
    return sent != 0 ? sent : error;
  });
}

int st_endpoint(const char* str, st_ehandle_t* ehandle) {
  return guarded([&] { return stp::client::make_endpoint(str, true, ehandle); });
}

// ---- no object

double st_time(void) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* st_version(void) {
  return "libst " STP_VERSION ", API level 0, v04";
}

const char* st_strerror(int error) {
  return stp::client::full_text(error);
}
