// SPDX-License-Identifier: BSD-3-Clause
// Two links of UDP sockets on the loopback interface, what they send each other, and a stranger.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "dpdk_port/link/address.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/frame.h"
#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/udp/socket_of.h"

namespace stp::port {

// What the Ethernet header and a Schedule Header take.
inline constexpr std::size_t kHead = 14 + 40;
inline constexpr std::byte kData{0x1b << 3}, kClearToSend{0x1a << 3}, kAnswer{0x02 << 3},
    kRequestToSend{0x16 << 3};
inline constexpr std::size_t kParamAt = 14 + 2;

// A Node's frame: what follows the Ethernet header begins with the op code of `op`.
inline Frame frame_of(std::byte op, const MacAddr& to, const MacAddr& from, std::size_t length,
                      unsigned seed) {
  Frame frame = make_frame(to, from, length, seed);
  frame[14] = op;
  return frame;
}
// The same, as DATA of the Transfer or region `d_id`.
inline Frame data_of(std::uint32_t d_id, const MacAddr& to, const MacAddr& from, std::size_t length,
                     unsigned seed) {
  Frame frame = frame_of(kData, to, from, length, seed);
  wire::store16(&frame[14 + wire::at::kDPort], 7);
  wire::store32(&frame[14 + wire::at::kDId], d_id);
  return frame;
}
inline Bytes after_ethernet(const Frame& frame) {
  return Bytes(frame).subspan(14);
}

// Whether the host has IPv6 at all.
inline bool has_ipv6() {
  LinkEnd end;
  std::string error;
  return open_link("udp:[::1],port=0", error) != nullptr;
}

// Two links of this host that know each other.
struct UdpPair {
  LinkEnd a, b;
  MacAddr b_at_a, a_at_b;

  explicit UdpPair(const std::string& host = "127.0.0.1", const std::string& options = "") {
    a.open("udp:" + host + ",port=0" + options);
    b.open("udp:" + host + ",port=0" + options);
    if (!a.port || !b.port) return;
    b_at_a = know(a, b, host);
    a_at_b = know(b, a, host);
  }
  static MacAddr know(LinkEnd& here, LinkEnd& there, std::string host) {
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    auto address = parse_internet_address(host).value();
    address.port = there.port->info().udp_port;
    return here.port->find_station(address, now()).value();
  }
  bool turn_until(const std::function<bool()>& done) { return port::turn_until(a, b, done); }
};

// A program with a socket of its own, that sends whatever it likes.
class Stranger {
 public:
  explicit Stranger(const LinkEnd& to) {
    name_.sin_family = AF_INET;
    name_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name_.sin_port = htons(to.port->info().udp_port);
  }
  ~Stranger() { ::close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  bool send(Bytes bytes) const {
    return ::sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&name_),
                    sizeof name_) == static_cast<ssize_t>(bytes.size());
  }

 private:
  const int fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in name_{};
};

}  // namespace stp::port
