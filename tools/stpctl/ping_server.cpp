// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/ping_server.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <list>
#include <thread>

#include "tools/stpctl/failure.h"
#include "tools/stpctl/handles.h"
#include "tools/stpctl/interrupt.h"

namespace stp::stpctl {
namespace {

// One connection, with a thread that notices when the peer has gone. The Node answers the pings.
class Visitor {
 public:
  explicit Visitor(st_chandle_t connection)
      : connection_(connection), thread_([this] { stay(); }) {}
  ~Visitor() { thread_.join(); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  [[nodiscard]] bool gone() const { return gone_; }

 private:
  void stay() {
    constexpr timeval kLook{.tv_sec = 0, .tv_usec = 200'000};
    st_header_t header;
    while (!interrupted()) {
      auto timeout = kLook;
      const auto got = st_rx(connection_.get(), &header, nullptr, &timeout);
      if (got < 0 && got != -EWOULDBLOCK && got != -EINTR) break;
    }
    connection_.reset();
    gone_ = true;
  }

  ConnectionHandle connection_;
  std::atomic<bool> gone_{false};
  std::thread thread_;
};

st_chandle_t accept(st_ehandle_t endpoint) {
  st_chandle_t connection = nullptr;
  if (const auto error = st_accept(endpoint, &connection); error != 0)
    throw Failure(st_strerror(error));
  return connection;
}

}  // namespace

void serve_pings(const Options& options) {
  st_ehandle_t handle = nullptr;
  if (const auto error = st_create(options.peer.c_str(), &handle); error != 0)
    throw Failure(options.peer + ": " + st_strerror(error));
  const EndpointHandle endpoint(handle);
  if (const auto error = st_listen(handle); error != 0)
    throw Failure(options.peer + ": " + st_strerror(error));
  std::printf("listening on %s; Ctrl-C ends it\n", options.peer.c_str());
  std::fflush(stdout);
  std::list<Visitor> visitors;
  while (!interrupted()) {
    // Signals are unblocked only while this thread waits, so that threads start with them blocked.
    // A signal that comes just before the wait is noticed after it.
    timeval look{.tv_sec = 0, .tv_usec = 200'000};
    st_event_t event;
    let_interrupts_in();
    const auto error = st_next_event(handle, &event, &look);
    watch_for_interrupts();
    visitors.remove_if([](const Visitor& visitor) { return visitor.gone(); });
    if (error == 0 && event.kind == ST_EVENT_CONNECTION) visitors.emplace_back(accept(handle));
    if (error != 0 && error != -EINTR && error != -EWOULDBLOCK)
      throw Failure(options.peer + ": " + st_strerror(error));
  }
}

}  // namespace stp::stpctl
