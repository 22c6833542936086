// SPDX-License-Identifier: BSD-3-Clause
// A server in coroutines of C++20: one for each client, all in one thread. It sends every message
// back, until SIGINT or SIGTERM ends it.
//
//   coroutine_server serve :3000
//   coroutine_server ask HOST:3000 TEXT
#include <signal.h>
#include <stp/coroutine.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "example.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMessage = 65'536;

// One client, from its request to its end.
stp::Task<> serve_client(stp::Loop& loop, stm_domain_t domain, stp::Connection connection) {
  stp::Mailbox news(loop);
  std::vector<char> bytes(kMessage);
  const auto memory = stp::register_memory(domain, bytes, STM_LOCAL_WRITE);
  try {
    stp::accept(connection, stp::connection_attr(loop, news.context()));
    for (;;) {
      const auto message = co_await loop.receive(connection, {memory, bytes});
      co_await loop.send(connection, {memory, {bytes.data(), message.length}}, message.tag);
    }
  } catch (const stp::Error& end) {
    if (end.code() != std::errc::not_connected) std::fprintf(stderr, "a client: %s\n", end.what());
  }
}

// Takes clients until an event of the program itself comes.
stp::Task<> serve_all(stp::Loop& loop, stm_domain_t domain, stp::Mailbox& requests,
                      const char* port) {
  const auto listener = stp::listen(domain, port, loop, requests.context());
  std::printf("serving on %s\n", port);
  std::fflush(stdout);
  stp::Tasks clients;
  for (;;) {
    auto event = co_await requests.next();
    if (auto* const request = std::get_if<stp::Request>(&event))
      clients.start(serve_client(loop, domain, std::move(request->connection)));
    else if (std::holds_alternative<stp::UserEvent>(event))
      co_return;
  }
}

int serve(const char* port) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before any thread starts
  const auto domain = stp::open_domain();
  stp::Loop loop(domain, 4096);
  stp::Mailbox requests(loop);
  std::thread([ends, queue = stm_queue_t(loop), to = requests.context()] {
    int signal = 0;
    ::sigwait(&ends, &signal);
    stm_queue_post(queue, to);
  }).detach();
  auto server = serve_all(loop, domain, requests, port);
  loop.run_until(server);
  return 0;
}

stp::Task<std::string> ask(stp::Loop& loop, stm_domain_t domain, const char* peer,
                           std::string text) {
  stp::Mailbox news(loop);
  const auto connection = stp::make_connection(domain, stp::connection_attr(loop, news.context()));
  if (!co_await stp::connected(connection, news, peer, 20s)) throw stp::Error(-ECONNREFUSED, peer);
  std::string answer(kMessage, '\0');
  const auto from = stp::register_memory(domain, text, STM_LOCAL_READ);
  const auto to = stp::register_memory(domain, answer, STM_LOCAL_WRITE);
  auto receive = loop.receive(connection, {to, answer});  // before the answer can come
  co_await loop.send(connection, {from, text});
  answer.resize((co_await std::move(receive)).length);
  stp::disconnect(connection);
  while (!std::holds_alternative<stp::Disconnected>(co_await news.next())) {
  }
  co_return answer;
}

constexpr const char* kUsage = "serve :PORT | ask HOST:PORT TEXT";

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 2 ? argv[1] : "";
  const bool serves = what == "serve" && argc == 3;
  if (!serves && !(what == "ask" && argc == 4)) return usage(argc, argv, kUsage);
  tell_link();
  if (serves) return serve(argv[2]);
  const auto domain = stp::open_domain();
  stp::Loop loop(domain, 16);
  auto answer = ask(loop, domain, argv[2], argv[3]);
  std::printf("%s\n", loop.run_until(answer).c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "coroutine_server: %s\n", error.what());
  return 3;
}
