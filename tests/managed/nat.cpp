// SPDX-License-Identifier: BSD-3-Clause
#include "tests/managed/nat.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace stp::test {
namespace {

constexpr int kLook = 5;  // ms, after which a socket that was replaced is not looked at any more
constexpr std::size_t kLongest = 65'536, kRemembered = 4'096;

}  // namespace

sockaddr_in name_of(std::uint32_t address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(address);
  name.sin_port = htons(port);
  return name;
}

UdpEnd::UdpEnd(std::uint32_t address)
    : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const auto name = name_of(address, 0);
  EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  const int room = 4 << 20;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
}

std::uint16_t UdpEnd::port() const {
  sockaddr_in name{};
  socklen_t length = sizeof name;
  ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &length);
  return ntohs(name.sin_port);
}

bool UdpEnd::send(const Datagram& datagram, const sockaddr_in& to) const {
  return ::sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                  reinterpret_cast<const sockaddr*>(&to),
                  sizeof to) == static_cast<ssize_t>(datagram.size());
}

std::optional<Datagram> UdpEnd::take(sockaddr_in& from) const {
  Datagram datagram(kLongest);
  socklen_t length = sizeof from;
  const auto got = ::recvfrom(fd_.get(), datagram.data(), datagram.size(), 0,
                              reinterpret_cast<sockaddr*>(&from), &length);
  if (got < 0) return std::nullopt;
  datagram.resize(static_cast<std::size_t>(got));
  return datagram;
}

Nat::Nat(std::uint16_t server)
    : server_(name_of(INADDR_LOOPBACK, server)), thread_([this] { run(); }) {}

Nat::~Nat() {
  stop_ = true;
  thread_.join();
}

void Nat::rebind(std::uint32_t address) {
  const std::lock_guard lock(mutex_);
  old_.push_back(std::exchange(outside_, UdpEnd(address)));
}

void Nat::rebind_inside() {
  const std::lock_guard lock(mutex_);
  old_.push_back(std::exchange(inside_, UdpEnd()));
}

void Nat::exchange(Nat& a, Nat& b) {
  const std::scoped_lock lock(a.mutex_, b.mutex_);
  std::swap(a.outside_, b.outside_);
}

void Nat::after(unsigned datagrams, std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  left_ = datagrams;
  what_ = std::move(what);
}

std::uint16_t Nat::port() const {
  const std::lock_guard lock(mutex_);
  return inside_.port();
}

std::uint16_t Nat::client() const {
  const std::lock_guard lock(mutex_);
  return ntohs(client_.sin_port);
}

std::vector<Datagram> Nat::heard_from_client() const {
  const std::lock_guard lock(mutex_);
  return of_client_;
}

std::vector<Datagram> Nat::heard_from_server() const {
  const std::lock_guard lock(mutex_);
  return of_server_;
}

void Nat::run() {
  while (!stop_) {
    std::array<pollfd, 2> both{};
    {
      const std::lock_guard lock(mutex_);
      both = {{{inside_.fd(), POLLIN, 0}, {outside_.fd(), POLLIN, 0}}};
    }
    ::poll(both.data(), both.size(), kLook);
    while (pass_on()) {
    }
  }
}

// One datagram of each side. False: there was none.
bool Nat::pass_on() {
  std::function<void()> due;
  bool found = false;
  {
    const std::lock_guard lock(mutex_);
    sockaddr_in from{};
    if (const auto datagram = inside_.take(from)) {
      found = true;
      client_ = from;
      outside_.send(*datagram, server_);
      if (of_client_.size() < kRemembered) of_client_.push_back(*datagram);
      if (left_ > 0 && --left_ == 0) due = std::move(what_);
    }
    if (const auto datagram = outside_.take(from)) {
      found = true;
      inside_.send(*datagram, client_);
      if (of_server_.size() < kRemembered) of_server_.push_back(*datagram);
    }
  }
  if (due) due();
  return found;
}

}  // namespace stp::test
