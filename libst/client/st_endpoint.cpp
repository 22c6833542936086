// SPDX-License-Identifier: BSD-3-Clause
// The C API: endpoints, options, connections (libst document, sections 5 to 8).
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
using stp::client::Handle;
using stp::client::Name;
using stp::client::OptionRule;

namespace {

int not_set(const char* argument) {
  return fail(-EINVAL, std::string("argument '") + argument + "' is NULL");
}

int remote_of_endpoint() {
  return fail(-ENOTCONN, "what the remote side chose is known of a connection only");
}

// A connection has settled what its endpoint had configured.
int get_of_connection(const Connection& connection, const OptionRule& rule, std::uint32_t& value) {
  if (rule.connection == nullptr) {
    value = connection.endpoint().get_option(rule);
    return 0;
  }
  stp::service::Reply info{};
  if (auto const error = connection.info(info); error != 0) return error;
  value = info.*rule.connection;
  return 0;
}

}  // namespace

int st_create(const char* str, st_ehandle_t* ehandle) {
  return guarded([&] {
    if (ehandle == nullptr) return not_set("ehandle");
    auto& table = stp::client::HandleTable::instance();
    if (table.inherited()) return fail(-EBADF, "libst does not work in a child of fork()");
    std::optional<Name> name;
    if (str != nullptr) {
      name.emplace();
      if (auto const error = stp::client::parse_name(str, *name); error != 0) return error;
    }
    std::shared_ptr<Endpoint> endpoint;
    if (auto const error = Endpoint::open(name, endpoint); error != 0) return error;
    auto const handle = table.add(Endpoint::kKind, std::move(endpoint));
    if (handle == 0) return fail(-EMFILE, "too many handles");
    *ehandle = reinterpret_cast<st_ehandle_t>(handle);
    return 0;
  });
}

int st_delete(st_ehandle_t ehandle) {
  return guarded([&] {
    auto const endpoint = stp::client::retire<Endpoint>(reinterpret_cast<Handle>(ehandle));
    if (!endpoint) return -EBADF;
    endpoint->end();
    return 0;
  });
}

int st_getopt(void* handle, int opt, void* val) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(handle);
    auto const connection = find<Connection>(handle);
    if (!endpoint && !connection) return -EBADF;
    if (val == nullptr) return not_set("val");
    auto const* const rule = stp::client::find_option(opt);
    if (rule == nullptr) return fail(-EINVAL, "no such option");
    auto& value = *static_cast<unsigned*>(val);
    if (connection) return get_of_connection(*connection, *rule, value);
    if (rule->remote()) return remote_of_endpoint();
    value = endpoint->get_option(*rule);
    return 0;
  });
}

int st_setopt(void* handle, int opt, void* val) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(handle);
    auto const connection = find<Connection>(handle);
    if (!endpoint && !connection) return -EBADF;
    if (val == nullptr) return not_set("val");
    auto const* const rule = stp::client::find_option(opt);
    if (rule == nullptr) return fail(-EINVAL, "no such option");
    auto const value = *static_cast<const unsigned*>(val);
    if (auto const error = stp::client::check_option(*rule, value); error != 0) return error;
    if (connection) return fail(-EBUSY, "options are set before the connection is made");
    return endpoint->set_option(*rule, value);
  });
}

int st_listen(st_ehandle_t ehandle) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(ehandle);
    return endpoint ? endpoint->listen() : -EBADF;
  });
}

int st_accept(st_ehandle_t ehandle, st_chandle_t* chandle) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (chandle == nullptr) return not_set("chandle");
    Handle handle = 0;
    if (auto const error = endpoint->accept(handle); error != 0) return error;
    *chandle = reinterpret_cast<st_chandle_t>(handle);
    return 0;
  });
}

int st_connect(st_ehandle_t ehandle, const char* peer, st_chandle_t* chandle) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (peer == nullptr) return not_set("peer");
    if (chandle == nullptr) return not_set("chandle");
    Name name;
    if (auto const error = stp::client::parse_name(peer, name); error != 0) return error;
    Handle handle = 0;
    if (auto const error = endpoint->connect(name, handle); error != 0) return error;
    *chandle = reinterpret_cast<st_chandle_t>(handle);
    return 0;
  });
}

int st_close(st_chandle_t chandle) {
  return guarded([&] {
    auto const connection = stp::client::retire<Connection>(reinterpret_cast<Handle>(chandle));
    if (!connection) return -EBADF;
    if (auto const error = connection->begin_close(); error != 0) return error;
    connection->end_close(stp::client::now() + Connection::kClosePatience);
    return 0;
  });
}

int st_macaddr(st_ehandle_t ehandle, const char* hostname, st_macaddr_t* macaddr) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (macaddr == nullptr) return not_set("macaddr");
    stp::client::Host host;
    auto error = hostname != nullptr ? stp::client::parse_host(hostname, host) : 0;
    MacAddr mac;
    if (error == 0) error = stp::client::resolve(endpoint->backend(), host, mac);
    if (error == 0) *macaddr = mac.to_u64();
    return error == -ETIMEDOUT ? -EHOSTUNREACH : error;
  });
}
