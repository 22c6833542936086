// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interface.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dpdk_port/link/ipv4_addresses.h"
#include "dpdk_port/link/packet_sockets.h"

namespace stp::port {
namespace {

class Socket {
 public:
  Socket(int domain, int type) : fd_(::socket(domain, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  // Queries an interface. False: see errno.
  bool ask(unsigned long what, const std::string& name, ifreq& answer) const {
    answer = {};
    name.copy(answer.ifr_name, sizeof answer.ifr_name - 1);
    return ::ioctl(fd_, what, &answer) == 0;
  }

 private:
  int fd_;
};

bool may_open_raw_sockets(std::string& error) {
  if (may_open_packet_sockets()) return true;
  error = errno == EPERM ? "this user lacks CAP_NET_RAW: run as root, or give the program the "
                           "capability with setcap cap_net_raw+ep"
                         : std::string("raw sockets do not open: ") + std::strerror(errno);
  return false;
}

}  // namespace

std::optional<Ipv4> first_address(const std::string& name, int index) {
  if (const auto all = ipv4_addresses(index)) {
    for (const InterfaceAddress& each : *all) {
      if (each.index == index) return Ipv4{each.ipv4};
    }
    return std::nullopt;
  }
  ifreq answer;
  if (!Socket(AF_INET, SOCK_DGRAM).ask(SIOCGIFADDR, name, answer)) return std::nullopt;
  sockaddr_in address;
  std::memcpy(&address, &answer.ifr_addr, sizeof address);
  return Ipv4{ntohl(address.sin_addr.s_addr)};
}

bool look_up_interface(const std::string& any_name, InterfaceFacts& out, std::string& error) {
  const std::string name = name_of_interface(any_name);
  const Socket socket(AF_INET, SOCK_DGRAM);
  ifreq answer;
  if (!socket.ask(SIOCGIFFLAGS, name, answer)) {
    error =
        errno == ENODEV ? "there is no such interface: 'ip link' lists them" : std::strerror(errno);
    return false;
  }
  if ((answer.ifr_flags & IFF_LOOPBACK) != 0) {
    error = "frames on it have no addresses: for this host alone use the link 'loop'";
    return false;
  }
  if ((answer.ifr_flags & IFF_UP) == 0) {
    error = "the interface is down: ip link set " + name + " up";
    return false;
  }
  if (!socket.ask(SIOCGIFHWADDR, name, answer) || answer.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    error = "this is no Ethernet interface: choose one that 'ip link' shows with link/ether";
    return false;
  }
  std::memcpy(out.mac.octets.data(), answer.ifr_hwaddr.sa_data, out.mac.octets.size());
  if (!socket.ask(SIOCGIFMTU, name, answer)) {
    error = std::string("its MTU cannot be read: ") + std::strerror(errno);
    return false;
  }
  out.mtu = static_cast<unsigned>(answer.ifr_mtu);
  if (socket.ask(SIOCGIFINDEX, name, answer)) out.address = first_address(name, answer.ifr_ifindex);
  return may_open_raw_sockets(error);
}

}  // namespace stp::port
