// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/ping_server.h"

#include <cerrno>
#include <cstdio>

#include "tools/stpctl/failure.h"
#include "tools/stpctl/handles.h"
#include "tools/stpctl/interrupt.h"

namespace stp::stpctl {
namespace {

constexpr unsigned kMostVisitors = 256;

// Accepts the next peer, or refuses it if `visitors` are too many. The Node answers the pings.
// Returns whether there is one visitor more. Does not wait: the peer may have gone meanwhile.
bool admit(st_ehandle_t endpoint, unsigned visitors) {
  st_chandle_t connection = nullptr;
  st_peer_t peer;
  timeval none{};
  const auto error = st_inspect(endpoint, &connection, &peer, &none);
  if (error == -EWOULDBLOCK || error == -EINTR) return false;
  if (error != 0) throw Failure(st_strerror(error));
  if (visitors < kMostVisitors && st_accept_opt(connection, nullptr) == 0) return true;
  st_close(connection);  // refuses it, unless the peer has gone
  return false;
}

}  // namespace

void serve_pings(const Options& options) {
  st_ehandle_t handle = nullptr;
  if (const auto error = st_create(options.peer.c_str(), &handle); error != 0)
    throw Failure(options.peer + ": " + st_strerror(error));
  const EndpointHandle endpoint(handle);
  unsigned inspect = 1;
  auto error = st_setopt(handle, ST_OPT_INSPECT, &inspect);
  if (error == 0) error = st_listen(handle);
  if (error != 0) throw Failure(options.peer + ": " + st_strerror(error));
  std::printf("listening on %s; Ctrl-C ends it\n", options.peer.c_str());
  std::fflush(stdout);
  unsigned visitors = 0;  // st_delete closes their connections in the end
  while (!interrupted()) {
    // Signals are unblocked only while this thread waits. A signal that comes just before the wait
    // is noticed after it.
    timeval look{.tv_sec = 0, .tv_usec = 200'000};
    st_event_t event;
    let_interrupts_in();
    error = st_next_event(handle, &event, &look);
    watch_for_interrupts();
    if (error == -EINTR || error == -EWOULDBLOCK) continue;
    if (error != 0) throw Failure(options.peer + ": " + st_strerror(error));
    if (event.kind != ST_EVENT_CONNECTION) {
      st_close(event.chandle);  // the peer has gone
      --visitors;
    } else if (admit(handle, visitors)) {
      ++visitors;
    }
  }
}

}  // namespace stp::stpctl
