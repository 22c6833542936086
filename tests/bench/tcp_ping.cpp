// SPDX-License-Identifier: BSD-3-Clause
// tcp_ping [--poll | --udp] SERVER-ADDRESS PORT [SIZE SECONDS]: a ping-pong over the kernel's TCP,
// as in a usual program: blocking, without Nagle's algorithm. With --poll it polls its socket
// instead of sleeping in recv, like programs that need the shortest round trip. With --udp it does
// that with datagrams, from and to sockets without a connection, as a server of many peers has
// them. With SIZE it is the client, which prints the median round trip in microseconds; without it,
// the server of one client, which over UDP ends when it is killed.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tests/bench/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLost = std::chrono::milliseconds(100);  // a datagram that has not come by then

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(what);
  return result;
}

sockaddr_in address_of(char** arguments) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(arguments[2])));
  if (::inet_pton(AF_INET, arguments[1], &address.sin_addr) != 1)
    throw std::runtime_error("not an IPv4 address");
  return address;
}

void no_delay(int socket) {
  const int one = 1;
  checked(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
}

// Returns false if the peer has closed the connection.
bool receive_all(int socket, std::vector<char>& bytes, bool poll) {
  if (!poll)
    return ::recv(socket, bytes.data(), bytes.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(bytes.size());
  for (std::size_t done = 0; done < bytes.size();) {
    const auto got = ::recv(socket, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (got == 0 || errno != EAGAIN)
      return false;
  }
  return true;
}
bool send_all(int socket, const std::vector<char>& bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

void serve(const sockaddr_in& address, bool poll) {
  const auto listener = checked(::socket(AF_INET, SOCK_STREAM, 0), "socket");
  const int one = 1;
  checked(::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
  checked(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  checked(::listen(listener, 1), "listen");
  std::puts("listening");
  std::fflush(stdout);
  const auto peer = checked(::accept(listener, nullptr, nullptr), "accept");
  no_delay(peer);
  std::uint32_t size = 0;
  if (::recv(peer, &size, sizeof size, MSG_WAITALL) != sizeof size || size > (1U << 20)) return;
  std::vector<char> bytes(size);
  while (receive_all(peer, bytes, poll) && send_all(peer, bytes)) {
  }
}

// Polls for a datagram, until `end`. Returns its length, or 0 if none has come.
std::size_t await_datagram(int socket, std::vector<char>& bytes, sockaddr_in& from,
                           Clock::time_point end) {
  do {
    socklen_t length = sizeof from;
    const auto got = ::recvfrom(socket, bytes.data(), bytes.size(), MSG_DONTWAIT,
                                reinterpret_cast<sockaddr*>(&from), &length);
    if (got > 0) return static_cast<std::size_t>(got);
  } while (Clock::now() < end);
  return 0;
}
void send_datagram(int socket, const std::vector<char>& bytes, std::size_t size,
                   const sockaddr_in& to) {
  ::sendto(socket, bytes.data(), size, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
           sizeof to);
}

void serve_datagrams(const sockaddr_in& address) {
  const auto own = checked(::socket(AF_INET, SOCK_DGRAM, 0), "socket");
  checked(::bind(own, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  std::puts("listening");
  std::fflush(stdout);
  std::vector<char> bytes(std::size_t{1} << 16);
  sockaddr_in from{};
  for (;;)
    if (const auto size = await_datagram(own, bytes, from, Clock::now() + kLost); size != 0)
      send_datagram(own, bytes, size, from);
}

// Makes round trips and returns the median in microseconds.
template <typename RoundTrip>
double median_of(double seconds, RoundTrip&& round_trip) {
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  for (auto start = Clock::now(); start < end;) {
    round_trip();
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(now - start).count());
    start = now;
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double median_over_udp(const sockaddr_in& address, std::uint32_t size, double seconds) {
  const auto own = checked(::socket(AF_INET, SOCK_DGRAM, 0), "socket");
  std::vector<char> bytes(size);
  sockaddr_in from{};
  return median_of(seconds, [&] {
    send_datagram(own, bytes, size, address);
    await_datagram(own, bytes, from, Clock::now() + kLost);
  });
}

double median_over_tcp(const sockaddr_in& address, bool poll, std::uint32_t size, double seconds) {
  const auto peer = checked(::socket(AF_INET, SOCK_STREAM, 0), "socket");
  checked(::connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
  no_delay(peer);
  if (::send(peer, &size, sizeof size, MSG_NOSIGNAL) != sizeof size)
    throw std::runtime_error("send");
  std::vector<char> bytes(size);
  return median_of(seconds, [&] {
    if (!send_all(peer, bytes) || !receive_all(peer, bytes, poll))
      throw std::runtime_error("the server has gone");
  });
}

int run(const sockaddr_in& address, bool poll, bool udp, char** numbers) {
  if (numbers == nullptr) {
    if (udp)
      serve_datagrams(address);
    else
      serve(address, poll);
    return 0;
  }
  const auto size = static_cast<std::uint32_t>(std::atoi(numbers[0]));
  const auto seconds = std::atof(numbers[1]);
  std::printf("%.3f\n", udp ? median_over_udp(address, size, seconds)
                            : median_over_tcp(address, poll, size, seconds));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "usage: tcp_ping [--poll | --udp] SERVER-ADDRESS PORT [SIZE SECONDS]\n";
  stp::bench::hold_to(kUsage, argc, argv);
  const bool poll = argc > 1 && std::strcmp(argv[1], "--poll") == 0;
  const bool udp = argc > 1 && std::strcmp(argv[1], "--udp") == 0;
  if (poll || udp) {
    ++argv;
    --argc;
  }
  if (argc != 3 && argc != 5) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    return run(address_of(argv), poll, udp, argc == 5 ? argv + 3 : nullptr);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "tcp_ping: %s\n", failure.what());
    return 1;
  }
}
