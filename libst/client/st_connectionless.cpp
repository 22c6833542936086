// SPDX-License-Identifier: BSD-3-Clause
// The C API: the connectionless model (libst document, sections 5.2 and 10.2).
#include <bit>

#include "libst/client/arguments.h"
#include "libst/client/error.h"
#include "libst/client/wait.h"

using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::find;
using stp::client::guarded;
using stp::client::guarded_per_frame;
using stp::client::Handle;

namespace {

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

int st_endpoint(const char* str, st_ehandle_t* ehandle) {
  return guarded([&] { return stp::client::make_endpoint(str, true, ehandle); });
}

int st_utx(void* ehandle, st_macaddr_t macaddr, st_header_t* hdr, void* opt_pay, int len, int bufx,
           int off) {
  return guarded_per_frame([&] {
    return with_port(ehandle, [&](Connection& port) {
      Connection::Sending what;
      const auto error = stp::client::sending_of(hdr, opt_pay, len, bufx, off, what);
      what.destination = macaddr;
      return error != 0 ? error : port.send(what);
    });
  });
}

int st_urx(void* ehandle, st_macaddr_t* macaddr, st_header_t* hdr, void* opt_pay,
           struct timeval* timeout) {
  return guarded_per_frame([&] {
    return with_port(ehandle, [&](Connection& port) {
      if (hdr == nullptr) return stp::client::not_set("hdr");
      stp::Time deadline = 0;
      if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
      stp::wire::Header header;
      const auto result = port.receive(header, opt_pay, deadline, macaddr);
      if (result >= 0) *hdr = std::bit_cast<st_header_t>(header);
      return result;
    });
  });
}
