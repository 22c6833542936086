// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/packet_sockets.h"

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace stp::port {
namespace {

struct Kept {
  int fd;
  bool used;
};

struct PacketSockets {
  std::mutex mutex;
  std::vector<Kept> kept;
};

PacketSockets& packet_sockets() {
  static PacketSockets all;
  return all;
}

int new_packet_socket() {
  return ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// As it was when it was opened.
void clear(int fd) {
  const sockaddr_ll nowhere{.sll_family = AF_PACKET,
                            .sll_protocol = 0,
                            .sll_ifindex = 0,
                            .sll_hatype = 0,
                            .sll_pkttype = 0,
                            .sll_halen = 0,
                            .sll_addr = {}};
  [[maybe_unused]] const int bound =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&nowhere), sizeof nowhere);
  const tpacket_req none{};
  ::setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof none);
  ::setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &none, sizeof none);
}

}  // namespace

bool keep_packet_socket(std::string& error) {
  const int fd = new_packet_socket();
  if (fd < 0) {
    error = errno == EPERM ? "this user lacks CAP_NET_RAW"
                           : std::string("a packet socket does not open: ") + std::strerror(errno);
    return false;
  }
  const std::lock_guard lock(packet_sockets().mutex);
  packet_sockets().kept.push_back({fd, false});
  return true;
}

bool may_open_packet_sockets() {
  {
    const std::lock_guard lock(packet_sockets().mutex);
    if (std::ranges::any_of(packet_sockets().kept, [](const Kept& one) { return !one.used; }))
      return true;
  }
  const int fd = new_packet_socket();
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

int open_packet_socket() {
  if (const int fd = new_packet_socket(); fd >= 0 || errno != EPERM) return fd;
  const std::lock_guard lock(packet_sockets().mutex);
  for (Kept& one : packet_sockets().kept) {
    if (std::exchange(one.used, true)) continue;
    return one.fd;
  }
  errno = EPERM;
  return -1;
}

void close_packet_socket(int fd) {
  const std::lock_guard lock(packet_sockets().mutex);
  const auto kept = std::ranges::find(packet_sockets().kept, fd, &Kept::fd);
  if (kept == packet_sockets().kept.end()) {
    ::close(fd);
    return;
  }
  clear(fd);
  kept->used = false;
}

}  // namespace stp::port
