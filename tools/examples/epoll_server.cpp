// SPDX-License-Identifier: BSD-3-Clause
// A server with an event loop: epoll waits for the queue's descriptor together with whatever else
// the program waits for (here: signals). It sends every message back.
//
//   epoll_server serve :3000
//   epoll_server ask HOST:3000 TEXT
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <stp/managed.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "example.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMessage = 65'536, kBuffers = 64;

class Server {
 public:
  explicit Server(const char* port) : listener_(stp::listen(domain_, port, queue_)) {
    for (std::size_t i = 0; i < kBuffers; ++i) post(i);
  }

  [[nodiscard]] int descriptor() const {
    return stp::checked(stm_queue_fd(queue_), "a descriptor");
  }

  // Takes all events; the descriptor is not readable afterwards.
  void handle_events() {
    stm_event_t events[16];
    while (const auto count = stp::checked(stm_queue_poll(queue_, events, 16), "polling"))
      for (int i = 0; i < count; ++i) handle(events[i]);
  }

 private:
  // A buffer is either in the pool or its message is being sent back. Its number is the context of
  // both.
  void post(std::uint64_t buffer) { stp::post(pool_, buffer, memory_, {at(buffer), kMessage}); }
  [[nodiscard]] char* at(std::uint64_t buffer) { return bytes_.data() + buffer * kMessage; }

  void handle(const stm_event_t& event) {
    switch (event.kind) {
      case STM_REQUEST: {
        auto attr = stp::connection_attr(queue_);
        attr.pool = pool_;
        if (stm_accept(event.connection, &attr, nullptr, 0) != 0)
          stm_reject(event.connection, nullptr, 0);  // too many clients
        return;
      }
      case STM_RECEIVE:
        if (event.status != 0 || stm_send(event.connection, event.context, 0, event.tag, memory_,
                                          at(event.context), event.length) != 0)
          post(event.context);
        return;
      case STM_SEND:  // whether it succeeded or not
        return post(event.context);
      case STM_DISCONNECTED:
      case STM_FAILED:
        stm_connection_close(event.connection);
        return;
      default:
        return;
    }
  }

  std::vector<char> bytes_ = std::vector<char>(kBuffers * kMessage);
  stp::Domain domain_ = stp::open_domain();
  stp::Queue queue_ = stp::make_queue(domain_, 4096);
  stp::Memory memory_ = stp::register_memory(domain_, bytes_, STM_LOCAL_WRITE);
  stp::Pool pool_ = stp::make_pool(domain_, kBuffers);
  stp::Listener listener_;
};

void add(int loop, int descriptor) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = descriptor;
  ::epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &wanted);
}

int serve(const char* port) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before the domain starts its thread
  Server server(port);
  const auto loop = ::epoll_create1(EPOLL_CLOEXEC);
  const auto signals = ::signalfd(-1, &ends, SFD_CLOEXEC);
  add(loop, signals);
  add(loop, server.descriptor());
  std::printf("serving on %s\n", port);
  std::fflush(stdout);
  for (;;) {
    epoll_event ready{};
    if (::epoll_wait(loop, &ready, 1, -1) != 1) continue;
    if (ready.data.fd == signals) return 0;
    server.handle_events();
  }
}

int ask(const char* peer, const std::string& text) {
  constexpr auto kPatience = 20s;
  std::vector<char> bytes(2 * kMessage);
  const auto domain = stp::open_domain();
  const auto queue = stp::make_queue(domain, 16);
  const auto memory = stp::register_memory(domain, bytes.data(), bytes.size(), STM_LOCAL_WRITE);
  const auto connection = stp::make_connection(domain, stp::connection_attr(queue));
  stp::checked(stm_connect(connection, peer, -1, nullptr, 0), "connecting");
  stp::expect_event(queue, STM_CONNECTED, kPatience);
  const auto length = text.copy(bytes.data(), kMessage);
  auto* const answer = bytes.data() + kMessage;
  stp::checked(stm_receive(connection, 1, memory, answer, kMessage), "posting a receive");
  stp::checked(stm_send(connection, 2, STM_QUIET, 0, memory, bytes.data(), length), "sending");
  const auto event = stp::expect_event(queue, STM_RECEIVE, kPatience);
  std::printf("%.*s\n", static_cast<int>(event.length), answer);
  return 0;
}

constexpr const char* kUsage = "serve :PORT | ask HOST:PORT TEXT";

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 2 ? argv[1] : "";
  const bool serves = what == "serve" && argc == 3;
  if (!serves && !(what == "ask" && argc == 4)) return usage(argc, argv, kUsage);
  tell_link();
  return serves ? serve(argv[2]) : ask(argv[2], argv[3]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "epoll_server: %s\n", error.what());
  return 3;
}
