// SPDX-License-Identifier: BSD-3-Clause
// A NAT between a client's UDP link and a server's, both on 127.0.0.0/8: it hands datagrams on from
// sockets of its own. On command it lets each side see the other at a new address, as a NAT does
// that has lost its table. What arrives at an old address afterwards is lost without a report.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "libst/os/unique_fd.h"

namespace stp::test {

using Datagram = std::vector<std::byte>;

sockaddr_in name_of(std::uint32_t address, std::uint16_t port);

// A UDP socket at that address of the loopback interface, and a free port.
class UdpEnd {
 public:
  explicit UdpEnd(std::uint32_t address = INADDR_LOOPBACK);
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::uint16_t port() const;
  // False: not all of it left.
  bool send(const Datagram& datagram, const sockaddr_in& to) const;
  // nullopt: nothing has come.
  std::optional<Datagram> take(sockaddr_in& from) const;

 private:
  os::UniqueFd fd_;
};

class Nat {
 public:
  // The server's link is at 127.0.0.1 and that UDP port.
  explicit Nat(std::uint16_t server);
  ~Nat();
  Nat(const Nat&) = delete;
  Nat& operator=(const Nat&) = delete;

  // The UDP port of 127.0.0.1 that the client reaches the server at.
  [[nodiscard]] std::uint16_t port() const;
  // That of the client itself, once it has been heard.
  [[nodiscard]] std::uint16_t client() const;

  // From now on the server sees the client at a new port of this address.
  void rebind(std::uint32_t address = INADDR_LOOPBACK);
  // From now on the client reaches and hears the server at a new port.
  void rebind_inside();
  // From now on the server sees the client of each where it saw that of the other.
  static void exchange(Nat& a, Nat& b);
  // As soon as it has handed on so many more datagrams of the client.
  void after(unsigned datagrams, std::function<void()> what);

  // The first datagrams that each has sent.
  [[nodiscard]] std::vector<Datagram> heard_from_client() const;
  [[nodiscard]] std::vector<Datagram> heard_from_server() const;

 private:
  void run();
  bool pass_on();

  const sockaddr_in server_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<UdpEnd> old_;   // nobody else gets their ports
  UdpEnd inside_, outside_;   // where the client reaches the server, and where the server sees it
  sockaddr_in client_{};
  std::vector<Datagram> of_client_, of_server_;
  unsigned left_ = 0;
  std::function<void()> what_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace stp::test
