// SPDX-License-Identifier: BSD-3-Clause
// kernel_stream [--udp BYTES [--kept MESSAGES]] [--memory MIB] ADDRESS PORT [SECONDS]: one stream
// through the kernel's network stack, as fast as it goes: TCP, or with --udp datagrams of BYTES
// without any protocol, which it hands over many at a time (UDP_SEGMENT) and takes so (UDP_GRO).
// With --kept so many messages that have been read stay in the socket for a while, as those of a
// link do (dpdk_port/udp/kept_messages.h). --memory: how much is sent again and again, and where it
// lands [16]. With SECONDS it is the receiver, which polls its socket and prints the bytes a second
// that came; without, the sender, which ends when it is killed or, over TCP, with the receiver.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMemory = 16;         // MiB
constexpr std::size_t kPiece = 1 << 20;     // of one call of TCP
constexpr std::size_t kMostOfUdp = 65'000;  // of one call
constexpr std::size_t kMostDatagrams = 64;  // of one call
constexpr std::size_t kMostKept = 400;      // as many as the buffer holds
constexpr std::size_t kMostMemory = 1'024;  // MiB
constexpr int kSocketBuffer = 16 << 20;
constexpr auto kPatience = std::chrono::seconds(20);

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

struct Plan {
  std::size_t datagram = 0;  // 0: TCP
  std::size_t kept = 0;
  std::size_t memory = kMemory << 20;
  sockaddr_in address{};
  double seconds = 0;  // 0: sends

  [[nodiscard]] int open() const {
    const auto type = datagram != 0 ? SOCK_DGRAM : SOCK_STREAM;
    const auto made = checked(::socket(AF_INET, type, 0), "socket");
    if (datagram == 0) return made;  // TCP sizes its buffers better by itself
    for (const auto which : {SO_RCVBUFFORCE, SO_SNDBUFFORCE})
      ::setsockopt(made, SOL_SOCKET, which, &kSocketBuffer, sizeof kSocketBuffer);
    return made;
  }
  [[nodiscard]] const sockaddr* to() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// A socket to receive from.
int await_sender(const Plan& plan) {
  const auto own = plan.open();
  const int one = 1;
  if (plan.datagram != 0) {
    checked(::setsockopt(own, IPPROTO_UDP, UDP_GRO, &one, sizeof one), "UDP_GRO");
    checked(::bind(own, plan.to(), sizeof plan.address), "bind");
    const int begin = 0;
    if (plan.kept != 0)
      checked(::setsockopt(own, SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof begin), "SO_PEEK_OFF");
    return own;
  }
  checked(::setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
  checked(::bind(own, plan.to(), sizeof plan.address), "bind");
  checked(::listen(own, 1), "listen");
  return checked(::accept(own, nullptr, nullptr), "accept");
}

void receive(const Plan& plan) {
  const auto from = await_sender(plan);
  const auto most = plan.datagram != 0 ? std::size_t{1} << 16 : kPiece;
  std::vector<char> memory(plan.memory + most);
  const int flags = plan.kept != 0 ? MSG_DONTWAIT | MSG_PEEK : MSG_DONTWAIT;
  std::size_t kept = 0;
  std::size_t at = 0;
  std::uint64_t bytes = 0;
  auto begin = Clock::now() + kPatience;
  auto end = begin;
  for (bool any = false;;) {
    const auto now = Clock::now();
    if (now >= end) break;
    const auto got = ::recv(from, memory.data() + at, most, flags);
    if (got < 0 && errno == EAGAIN) continue;
    if (checked(static_cast<int>(got), "recv") == 0) break;
    if (!any) {  // what waits already is not counted
      begin = Clock::now();
      end = begin + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(plan.seconds));
    } else {
      bytes += static_cast<std::uint64_t>(got);
    }
    any = true;
    at = (at + static_cast<std::size_t>(got)) % plan.memory;
    if (plan.kept == 0 || ++kept <= plan.kept) continue;
    --kept;
    checked(static_cast<int>(::recv(from, nullptr, 0, MSG_DONTWAIT | MSG_TRUNC)), "recv");
  }
  if (bytes == 0) throw std::runtime_error("nothing came");
  std::printf("%.0f\n", static_cast<double>(bytes) /
                            std::chrono::duration<double>(Clock::now() - begin).count());
}

int connect_in_time(const Plan& plan) {
  for (const auto end = Clock::now() + kPatience;;) {
    const auto made = plan.open();
    if (::connect(made, plan.to(), sizeof plan.address) == 0) return made;
    if (Clock::now() >= end) checked(-1, "connect");
    ::close(made);
    ::usleep(10'000);
  }
}

void send(const Plan& plan) {
  const auto to = connect_in_time(plan);
  auto piece = kPiece;
  if (plan.datagram != 0) {
    const auto size = static_cast<int>(plan.datagram);
    checked(::setsockopt(to, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size), "UDP_SEGMENT");
    piece = plan.datagram * std::min(kMostDatagrams, kMostOfUdp / plan.datagram);
  }
  const std::vector<char> memory(plan.memory + piece, 'x');
  for (std::size_t at = 0;;) {
    const auto sent = ::send(to, memory.data() + at, piece, MSG_NOSIGNAL);
    if (sent > 0) at = (at + static_cast<std::size_t>(sent)) % plan.memory;
    if (sent >= 0 || errno == EAGAIN || errno == ENOBUFS) continue;
    // The receiver is not there yet.
    if (plan.datagram != 0 && errno == ECONNREFUSED) continue;
    return;
  }
}

constexpr const char* kUsage =
    "usage: kernel_stream [--udp BYTES [--kept MESSAGES]] [--memory MIB] ADDRESS PORT [SECONDS]\n";

Plan plan_of(int argc, char** argv) {
  stp::bench::hold_to(kUsage, argc, argv);
  Plan plan;
  const auto option = [&](const char* name, std::size_t least, std::size_t most, std::size_t& out) {
    if (argc <= 2 || std::strcmp(argv[1], name) != 0) return;
    out = std::strtoul(argv[2], nullptr, 10);
    if (out < least || out > most)
      throw std::runtime_error(std::string(name) + ": " + std::to_string(least) + " to " +
                               std::to_string(most) + ", not " + argv[2]);
    argv += 2;
    argc -= 2;
  };
  std::size_t mib = kMemory;
  option("--udp", 1, kMostOfUdp, plan.datagram);
  if (plan.datagram != 0) option("--kept", 0, kMostKept, plan.kept);
  option("--memory", 1, kMostMemory, mib);
  plan.memory = mib << 20;
  if (argc != 3 && argc != 4)
    stp::bench::refuse("kernel_stream", "ADDRESS and PORT are needed, behind the options", kUsage);
  plan.address.sin_family = AF_INET;
  plan.address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  if (::inet_pton(AF_INET, argv[1], &plan.address.sin_addr) != 1)
    throw std::runtime_error(std::string(argv[1]) + " is not an IPv4 address");
  if (argc == 4) plan.seconds = std::atof(argv[3]);
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto plan = plan_of(argc, argv);
    if (plan.seconds > 0)
      receive(plan);
    else
      send(plan);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernel_stream: %s\n", e.what());
    return 1;
  }
  return 0;
}
