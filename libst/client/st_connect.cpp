// SPDX-License-Identifier: BSD-3-Clause
// The C API: connections (libst document, section 7), and option payload on their way (Appendix A).
#include <cstring>

#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "libst/client/wait.h"
#include "libst/include/stp/st.h"

using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::find;
using stp::client::guarded;
using stp::client::guarded_per_frame;
using stp::client::Handle;
using stp::client::Name;
using stp::client::not_set;
using stp::service::Reply;

namespace {

stp::OptionPayload option_of(const void* given) {
  if (given == nullptr) return {};
  return stp::to_option({static_cast<const std::byte*>(given), ST_OPTION_SIZE});
}

void tell(const Reply& told, st_peer_t& peer) {
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
  Reply told{};
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
    Reply told{};
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
    Reply told{};
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
    const auto connection = stp::client::retire<Connection>(reinterpret_cast<Handle>(chandle));
    if (!connection) return -EBADF;
    if (const auto error = connection->begin_close(); error != 0) return error;
    connection->end_close(stp::client::now() + Connection::kClosePatience);
    return 0;
  });
}
