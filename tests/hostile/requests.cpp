// SPDX-License-Identifier: BSD-3-Clause
// Requests without pause, and programs that go in the middle of one.
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "libst/ipc/socket.h"
#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

constexpr int kClients = 8;  // that send at the same time

// Whatever the request needs, it names: so it does as much work as it can.
Request with_own_objects(Client& client, RequestKind kind, const Client::Ends& ends,
                         std::uint64_t region, std::uint32_t uport) {
  auto order = Client::request(kind, ends.listener);
  order.vc = ends.out.vc;
  order.region = region;
  order.mac = client.mac();
  order.uport = uport;
  order.permissions = permit::kData;
  order.ipv4 = 0x7f000001;
  order.base = 8;
  return order;
}

// One client sends requests of each kind in turn, thousands of each, until one ends it.
std::uint64_t flood_once(const Attack& attack, std::uint32_t uport) {
  Client client(attack.socket);
  if (!client.ok()) return 0;
  const auto ends = client.connect_to_itself(uport);
  const auto memory = shareable(kBuffer);
  std::uint64_t region = 0, sent = 0;
  if (!ends.in ||
      client.map(ends.listener, Direction::kReceive, 0, memory.get(), kBuffer, region) != 0)
    return 0;
  constexpr int kOfEach = 500;
  for (const auto& rule : ipc::kRequests) {
    const auto kind = rule.kind;
    // They need a descriptor, or end what the others name.
    if (kind == RequestKind::kMap || kind == RequestKind::kTraceStart ||
        kind == RequestKind::kUnmap || kind == RequestKind::kClose)
      continue;
    for (int i = 0; i < kOfEach && !attack.over(); ++i, ++sent) {
      auto order = with_own_objects(client, kind, ends, region, uport + 1);
      order.cursor = static_cast<std::uint64_t>(i);
      order.index = static_cast<std::uint64_t>(i);
      if (client.ask(order) == -ECONNRESET) return sent;
    }
  }
  return sent;
}

// Sends a request and goes, without the answer.
void go_with(Client& client, const Request& request, std::span<const int> fds = {}) {
  host::send_request(client.socket(), request, fds);
  client.hang_up();
}

Request one_buffer(std::uint64_t endpoint) {
  auto order = Client::request(RequestKind::kMap, endpoint);
  order.direction = static_cast<std::uint32_t>(Direction::kReceive);
  order.segment_count = order.piece_count = 1;
  order.segments[0] = {.fd_index = 0, .reserved = 0, .offset = 0, .length = kBuffer};
  order.pieces[0] = {.at = 0, .length = kBuffer};
  return order;
}

// Lives until that step of what a program does first. Returns false if there is no such step.
bool live_until(unsigned step, const Attack& attack) {
  Client client(attack.socket, step > 1);
  if (!client.ok() || step == 0) return true;
  if (step == 1) return go_with(client, Client::request(RequestKind::kMapped)), true;
  const auto endpoint = client.open_endpoint();
  if (step == 2) return go_with(client, Client::request(RequestKind::kListen, endpoint)), true;
  auto connect = Client::request(RequestKind::kConnect, endpoint);
  connect.mac = client.mac();
  connect.uport = attack.uport;
  if (step == 3) return go_with(client, connect), true;
  const auto memory = shareable(kBuffer);
  if (step == 4) return go_with(client, one_buffer(endpoint), std::array{memory.get()}), true;
  if (step > 5 || client.ask(connect) != 0) return false;
  auto mapped = Client::request(RequestKind::kMapped);
  mapped.vc = client.reply().vc;
  go_with(client, mapped);
  return true;
}

}  // namespace

void flood(Attack& attack) {
  std::atomic<std::uint64_t> sent{0};
  say_ready();
  std::vector<std::thread> clients;
  for (std::uint32_t i = 0; i < kClients; ++i)
    clients.emplace_back([&, i] {
      while (!attack.over()) sent += flood_once(attack, attack.uport + 2 * i);
    });
  for (auto& client : clients) client.join();
  if (sent == 0) throw Cannot("stpd takes no request");
  say("sent", sent);
}

void crowd(Attack& attack) {
  std::uint64_t lives = 0, full = 0;
  constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 1'000};
  say_ready();
  for (; !attack.over(); ++lives) {
    UniqueFd socket;
    if (ipc::connect_to(attack.socket, socket, kPatience) == -EAGAIN) ++full;
  }
  say("lives", lives);
  say("full", full);
}

void leave(Attack& attack) {
  std::uint64_t lives = 0;
  say_ready();
  for (unsigned step = 0; !attack.over(); ++lives) step = live_until(step, attack) ? step + 1 : 0;
  say("lives", lives);
}

}  // namespace stp::hostile
