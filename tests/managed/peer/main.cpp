// SPDX-License-Identifier: BSD-3-Clause
// A program that a test kills: accepts a connection on :3000 of the link of STP_LINK and does
// nothing more.
#include <unistd.h>
#include <stp/managed.hpp>

#include <cstdio>

namespace {

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

int run() {
  const auto domain = stp::open_domain();
  const auto queue = stp::make_queue(domain, 16);
  const auto listener = stp::listen(domain, ":3000", queue);
  say("listening");
  for (;;) {
    stm_event_t event{};
    if (stp::checked(stm_queue_wait(queue, 1, &event, 1, -1), "waiting") == 0) continue;
    const auto attr = stp::connection_attr(queue);
    if (event.kind == STM_REQUEST)
      stp::checked(stm_accept(event.connection, &attr, nullptr, 0), "accepting");
    if (event.kind == STM_CONNECTED) say("connected");
  }
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const stp::Error& error) {
    std::fprintf(stderr, "managed_peer: %s\n", error.what());
    return 1;
  }
}
