// SPDX-License-Identifier: BSD-3-Clause
// The C API: data transfer and the rest (libst document, sections 10 and 11).
#include <bit>
#include <chrono>

#include "libst/client/arguments.h"
#include "libst/client/error.h"
#include "libst/client/wait.h"

using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::find;
using stp::client::guarded_per_frame;
using stp::client::not_set;

static_assert(sizeof(st_header_t) == stp::wire::kHeaderSize);
static_assert(ST_APPEND_SIZE == stp::wire::kAppendSize && ST_OPTION_SIZE == stp::wire::kOptionSize);

int st_tx(void* chandle, st_header_t* hdr, void* opt_pay, int len, int bufx, int off) {
  return guarded_per_frame([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    Connection::Sending what;
    const auto error = stp::client::sending_of(hdr, opt_pay, len, bufx, off, what);
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

double st_time(void) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* st_version(void) {
  return "libst " STP_VERSION ", API level 0, v04";
}

const char* st_strerror(int error) {
  return stp::client::describe(error);
}
