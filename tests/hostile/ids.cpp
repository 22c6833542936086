// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cerrno>
#include <set>
#include <vector>

#include "stp/wire/big_endian.h"
#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"
#include "tests/stpd/hostile_client.h"

namespace stp::hostile {
namespace {

// All requests that name an object.
constexpr std::array kNaming{
    RequestKind::kConfigure, RequestKind::kEndpointConfig, RequestKind::kCloseEndpoint,
    RequestKind::kListen,    RequestKind::kAccept,         RequestKind::kConnect,
    RequestKind::kBacklog,   RequestKind::kDecide,         RequestKind::kOpenPort,
    RequestKind::kVcInfo,    RequestKind::kClose,          RequestKind::kUnmap,
    RequestKind::kAllocMx,   RequestKind::kFreeMx,         RequestKind::kUnlisten,
    RequestKind::kSettle};

// Guesses ids that are near its own in each part, or random.
std::uint64_t guess(Attack& attack, std::uint64_t own) {
  constexpr unsigned kLikelyIndexBits = 20;
  const auto near = attack.dice() % 64;
  switch (attack.dice() % 5) {
    case 0:
      return own - near;
    case 1:
      return own + near;
    case 2:
      return own - (near << kLikelyIndexBits) + attack.dice() % 64;
    case 3:
      return ((attack.dice() % 256) << kLikelyIndexBits) + attack.dice() % 64;
    default:
      return attack.dice();
  }
}

}  // namespace

void forge(Attack& attack) {
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  auto ends = client.connect_to_itself(attack.uport);
  const auto memory = shareable(kBuffer);
  std::uint64_t region = 0;
  if (!ends.in ||
      client.map(ends.listener, Direction::kReceive, 0, memory.get(), kBuffer, region) != 0)
    throw Cannot("it has nothing to compare with");
  const std::set<std::uint64_t> own{ends.caller, ends.listener, ends.out.vc, ends.in.vc, region, 0};
  say_ready();
  std::uint64_t tries = 0;
  while (!attack.over() && !attack.enough(tries)) {
    const auto kind = kNaming[attack.dice() % kNaming.size()];
    auto order = Client::request(kind);
    order.endpoint = guess(attack, ends.listener);
    order.vc = guess(attack, ends.out.vc);
    order.region = guess(attack, region);
    // Skips its own objects: a request that succeeds names another client's.
    if (own.contains(order.endpoint) || own.contains(order.vc) || own.contains(order.region))
      continue;
    order.mac = client.mac();
    order.uport = attack.uport + 1;
    order.permissions = permit::kData;
    order.mx = static_cast<std::uint32_t>(attack.dice() % 64);
    const auto result = client.ask(order);
    if (result == -ECONNRESET) throw Cannot("thrown out");
    if (result >= 0 || result == -EBUSY || result == -EINPROGRESS)
      throw Breach("request " + std::to_string(static_cast<unsigned>(kind)) + " reached endpoint " +
                   std::to_string(order.endpoint) + ", vc " + std::to_string(order.vc) +
                   ", region " + std::to_string(order.region));
    ++tries;
  }
  // Frees Mx of other clients as if they were its own.
  for (std::uint32_t mx = 0; mx < 4'096; ++mx) {
    auto order = Client::request(RequestKind::kFreeMx, ends.listener);
    order.mx = mx;
    if (client.ask(order) == 0) throw Breach("freed Mx " + std::to_string(mx));
  }
  say("tries", tries);
}

void noise(Attack& attack) {
  say_ready();
  std::uint64_t lives = 0;
  for (; !attack.over() && !attack.enough(lives); ++lives)
    stpd::Hostile(attack.socket, std::mt19937_64(attack.dice())).live();
  say("lives", lives);
}

void strangers(Attack& attack) {
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  say_ready();
  std::uint64_t asked = 0;
  for (std::uint32_t host = 256; !attack.over(); ++host, ++asked) {
    auto order = Client::request(RequestKind::kResolve);
    if (attack.ipv6) {
      order.ip[0] = 0xfd;
      wire::store32(reinterpret_cast<std::byte*>(&order.ip[12]), host & 0xffff);
    } else {
      order.ipv4 = 0x0a090000 | (host & 0xffff);
    }
    order.udp_port = 1 + host % 1'000;  // over UDP each takes a place in a table
    client.ask(order);
  }
  say("asked", asked);
}

}  // namespace stp::hostile
