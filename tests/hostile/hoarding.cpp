// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <list>
#include <thread>
#include <vector>

#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

// Maps the same memory repeatedly, with many segments per request, each a mapping of its own.
struct Rows {
  static constexpr std::uint32_t kSegments = ipc::kMaxSegments;
  UniqueFd fd = shareable(2 * kSegments * kBuffer);

  // Every other buffer of the same file, because the kernel merges mappings of adjacent buffers.
  [[nodiscard]] Request request(std::uint64_t endpoint, std::uint32_t base) const {
    auto order = Client::request(RequestKind::kMap, endpoint);
    order.direction = static_cast<std::uint32_t>(Direction::kReceive);
    order.base = base;
    order.segment_count = kSegments;
    order.piece_count = 1;
    order.pieces[0] = {.at = 0, .length = kSegments * kBuffer};
    for (std::uint32_t i = 0; i < kSegments; ++i)
      order.segments[i] = {
          .fd_index = 0, .reserved = 0, .offset = 2 * i * kBuffer, .length = kBuffer};
    return order;
  }
};

// Makes regions of one buffer, all of the same memory, each with an Mx.
std::uint64_t fill_with_regions(Attack& attack, Client& client, std::uint64_t endpoint, int fd) {
  std::uint64_t count = 0, region = 0;
  std::uint16_t mx = 0;
  for (std::uint32_t base = 0; base < 65'536 && !attack.over() && !attack.enough(count); ++base) {
    if (client.map(endpoint, Direction::kReceive, base, fd, kBuffer, region) != 0) break;
    client.alloc_mx(region, mx);
    ++count;
  }
  return count;
}

}  // namespace

void hoard(Attack& attack) {
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  const auto memory = shareable(kBuffer);
  // First as many connections to itself as it gets, all on one listener.
  std::list<Channel> channels;
  const auto listener = client.open_endpoint();
  std::uint64_t endpoints = 1;
  if (listener == 0 || client.listen(listener, attack.uport) != 0) throw Cannot("no listener");
  const auto begun = std::chrono::steady_clock::now();
  const auto third = (attack.until - begun) / 3;
  while (std::chrono::steady_clock::now() < begun + third) {
    const auto caller = client.open_endpoint();
    if (caller == 0) break;
    ++endpoints;
    auto out = client.connect(caller, attack.uport);
    if (!out) break;
    channels.push_back(std::move(out));
    auto in = client.await_accept(listener);
    if (!in) break;
    channels.push_back(std::move(in));
  }
  // The places stay taken without the channels' memory and descriptors.
  const auto connections = channels.size();
  channels.clear();
  std::uint64_t regions = 0;
  for (int i = 0; i < 16; ++i) {
    const auto endpoint = client.open_endpoint();
    if (endpoint == 0) break;
    const auto more = fill_with_regions(attack, client, endpoint, memory.get());
    regions += more;
    if (more == 0 || attack.over() || attack.enough(regions)) break;
  }
  while (client.open_endpoint() != 0) ++endpoints;
  say("connections", connections);
  say("regions", regions);
  say("endpoints", endpoints);
  say_ready();
  ::pause();
}

void mappings(Attack& attack) {
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  const Rows rows;
  std::uint64_t count = 0;
  int result = 0;
  while (result == 0 && !attack.over() && !attack.enough(count)) {
    const auto endpoint = client.open_endpoint();
    if (endpoint == 0) break;
    result = 0;
    for (std::uint32_t base = 0;
         base + Rows::kSegments <= 65'536 && !attack.over() && !attack.enough(count);
         base += Rows::kSegments) {
      const auto fd = rows.fd.get();
      result = client.ask(rows.request(endpoint, base), std::span(&fd, 1));
      if (result != 0) break;
      ++count;
    }
  }
  say("maps", count);
  say("refused", result < 0 ? static_cast<std::uint64_t>(-result) : 0);
  say_ready();
  rest(attack);
}

void places(Attack& attack) {
  constexpr std::size_t kTries = 600;
  std::list<Client> clients;
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < kTries && !attack.over() && !attack.enough(taken); ++i) {
    clients.emplace_back(attack.socket);
    if (clients.back().ok())
      ++taken;
    else
      clients.pop_back();
    if (i > taken + 32) break;
  }
  say("places", taken);
  say_ready();
  rest(attack);
}

void forked(Attack& attack) {
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  const auto ends = client.connect_to_itself(attack.uport);
  const auto child = ::fork();
  if (child == 0) {
    // Holds all descriptors and all mappings until it is killed.
    for (const auto fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    ::sleep(60);
    ::_exit(0);
  }
  say("child", static_cast<std::uint64_t>(child));
  say_ready();
  ::pause();
}

void absent(Attack& attack) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  const auto endpoint = client.open_endpoint();
  say_ready();
  std::uint64_t taken = 0, refused = 0, region = 0;
  for (std::uint32_t base = 0; !attack.over() && !attack.enough(taken + refused);
       base += kBytes / kBuffer) {
    const UniqueFd fd(::memfd_create("absent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (::ftruncate(fd.get(), kBytes) != 0) break;
    ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK);
    const auto result =
        client.map(endpoint, Direction::kReceive, base % 65'536, fd.get(), kBytes, region);
    if (result == -ECONNRESET) break;
    ++(result == 0 ? taken : refused);
  }
  say("taken", taken);
  say("refused", refused);
}

// Allocates the pages itself, as required. The kernel kills it, or allocates no more.
void lend(Attack& attack) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  const auto endpoint = client.open_endpoint();
  say_ready();
  std::uint64_t lent = 0, region = 0;
  for (std::uint32_t base = 0; !attack.over(); base += kBytes / kBuffer) {
    const auto memory = shareable(kBytes);
    if (!memory) break;
    if (client.map(endpoint, Direction::kReceive, base, memory.get(), kBytes, region) != 0) break;
    lent += kBytes;
    say("lent", lent);
  }
  rest(attack);
}

// The same pages many times: so little memory of its own is needed.
void largest(Attack& attack) {
  constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  auto open = Client::request(RequestKind::kOpenEndpoint);
  constexpr unsigned kLog2 = 20;  // so that the Bufx suffice
  open.config.bufsize = kLog2;
  if (client.ask(open) != 0) throw Cannot("no endpoint");
  const auto endpoint = client.reply().endpoint;
  const auto memory = shareable(kBytes);
  const auto fd = memory.get();
  auto order = Client::request(RequestKind::kMap, endpoint);
  order.direction = static_cast<std::uint32_t>(Direction::kReceive);
  order.segment_count = ipc::kMaxSegments;
  for (auto& segment : order.segments)
    segment = {.fd_index = 0, .reserved = 0, .offset = 0, .length = kBytes};
  order.base = 1;
  order.piece_count = 1;
  order.pieces[0] = {.at = 0, .length = ipc::kMaxSegments * kBytes};
  // stpd maps a file that it has sealed only as long as a region of it is there.
  std::uint64_t first = 0;
  if (client.map(endpoint, Direction::kReceive, 0, fd, std::size_t{1} << kLog2, first) != 0)
    throw Cannot("its memory is not taken");
  say_ready();
  std::uint64_t lent = 0;
  while (lent == 0 || !attack.over()) {
    const auto result = client.ask(order, std::span(&fd, 1));
    if (result == -EDQUOT) {  // what it had before is not unmapped yet
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (result != 0) throw Cannot("its memory is not taken: " + std::to_string(result));
    auto end = Client::request(RequestKind::kUnmap, endpoint);
    end.region = client.reply().region;
    if (client.ask(end) != 0) throw Cannot("its memory is not given back");
    ++lent;
  }
  say("lent", lent);
}

void idle(Attack& attack) {
  Client client(attack.socket);
  const auto endpoint = client.ok() ? client.open_endpoint() : 0;
  if (endpoint == 0) throw Cannot("stpd does not take it");
  std::list<Channel> channels;
  auto next = std::chrono::steady_clock::now();
  say_ready();
  while (!attack.over() && !attack.enough(channels.size())) {
    auto channel = client.connect(endpoint, attack.uport);
    if (!channel) break;
    channels.push_back(std::move(channel));
    if (attack.rate == 0) continue;
    next += std::chrono::nanoseconds(1'000'000'000 / attack.rate);
    std::this_thread::sleep_until(next);
  }
  say("connections", channels.size());
  rest(attack);
}

}  // namespace stp::hostile
