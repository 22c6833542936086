// SPDX-License-Identifier: BSD-3-Clause
// The C API: data transfer over connections and the connectionless model (libst document, sections
// 5.2, 10 and 11), and calls that concern no object.
#include <bit>
#include <chrono>

#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "libst/client/wait.h"
#include "libst/include/stp/st.h"

using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::fail;
using stp::client::find;
using stp::client::guarded;
using stp::client::guarded_per_frame;
using stp::client::Handle;
using stp::client::not_set;

static_assert(sizeof(st_header_t) == stp::wire::kHeaderSize);
static_assert(ST_APPEND_SIZE == stp::wire::kAppendSize && ST_OPTION_SIZE == stp::wire::kOptionSize);

namespace {

// Converts the arguments of st_tx and st_utx. Returns 0 or -EINVAL.
int sending_of(const st_header_t* hdr, const void* opt_pay, int len, int bufx, int off,
               Connection::Sending& out) {
  if (hdr == nullptr) return not_set("hdr");
  if (len < 0 || off < 0) return fail(-EINVAL, "len and off must not be negative");
  out.header = std::bit_cast<stp::wire::Header>(*hdr);
  out.payload = opt_pay;
  out.length = static_cast<std::uint32_t>(len);
  out.bufx = static_cast<std::uint32_t>(bufx);
  out.offset = static_cast<std::uint32_t>(off);
  return 0;
}

// Does something with the Port of an endpoint.
template <typename Use>
int with_port(void* ehandle, Use&& use) {
  const auto endpoint = find<Endpoint>(ehandle);
  if (!endpoint) return -EBADF;
  Handle handle = 0;
  if (const auto error = endpoint->open_port(handle); error != 0) return error;
  const auto port = find<Connection>(handle);
  return port ? use(*port) : -ECANCELED;
}

}  // namespace

// ---- connections

int st_tx(void* chandle, st_header_t* hdr, void* opt_pay, int len, int bufx, int off) {
  return guarded_per_frame([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    Connection::Sending what;
    const auto error = sending_of(hdr, opt_pay, len, bufx, off, what);
    return error != 0 ? error : connection->send(what);
  });
}

int st_rx(void* chandle, st_header_t* hdr, void* opt_pay, struct timeval* timeout) {
  return guarded_per_frame([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    if (hdr == nullptr) return not_set("hdr");
    stp::Time deadline = 0;
    if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
    stp::wire::Header header;
    const auto result = connection->receive(header, opt_pay, deadline);
    if (result >= 0) *hdr = std::bit_cast<st_header_t>(header);
    return result;
  });
}

int st_flush(void* handle) {
  return guarded_per_frame([&] {
    if (const auto connection = find<Connection>(handle); connection) return connection->flush();
    const auto endpoint = find<Endpoint>(handle);
    return endpoint ? endpoint->flush() : -EBADF;
  });
}

// ---- the connectionless model

int st_endpoint(const char* str, st_ehandle_t* ehandle) {
  return guarded([&] { return stp::client::make_endpoint(str, true, ehandle); });
}

int st_utx(void* ehandle, st_macaddr_t macaddr, st_header_t* hdr, void* opt_pay, int len, int bufx,
           int off) {
  return guarded_per_frame([&] {
    return with_port(ehandle, [&](Connection& port) {
      Connection::Sending what;
      const auto error = sending_of(hdr, opt_pay, len, bufx, off, what);
      what.destination = macaddr;
      return error != 0 ? error : port.send(what);
    });
  });
}

int st_urx(void* ehandle, st_macaddr_t* macaddr, st_header_t* hdr, void* opt_pay,
           struct timeval* timeout) {
  return guarded_per_frame([&] {
    return with_port(ehandle, [&](Connection& port) {
      if (hdr == nullptr) return not_set("hdr");
      stp::Time deadline = 0;
      if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
      stp::wire::Header header;
      const auto result = port.receive(header, opt_pay, deadline, macaddr);
      if (result >= 0) *hdr = std::bit_cast<st_header_t>(header);
      return result;
    });
  });
}

// ---- no object

double st_time(void) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* st_version(void) {
  return "libst " STP_VERSION ", API level 0, v04";
}

const char* st_strerror(int error) {
  return stp::client::describe(error);
}
