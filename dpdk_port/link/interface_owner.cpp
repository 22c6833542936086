// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interface_owner.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/program_name.h"

namespace stp::port {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;

  Address(int index, const MacAddr& mac) {
    const std::string text = "stp-link:" + std::to_string(index) + ':' + to_string(mac);
    name.sun_family = AF_UNIX;
    text.copy(name.sun_path + 1, sizeof name.sun_path - 1);  // a leading zero: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

int unix_socket() {
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// The process that listens at that name; pid 0: none, or not visible from here.
ucred listener_at(const Address& address) {
  ucred owner{};
  socklen_t size = sizeof owner;
  const int fd = unix_socket();
  if (fd < 0) return owner;
  // EAGAIN: its queue is full, but it exists.
  if (::connect(fd, address.get(), address.size) != 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) {
    owner = {};
  }
  ::close(fd);
  return owner;
}

// Anybody may listen at a name, but not open a packet socket on an interface.
bool has_packet_socket(uid_t user, int index) {
  std::ifstream table("/proc/self/net/packet");
  std::string line;
  std::getline(table, line);  // sk RefCnt Type Proto Iface R Rmem User Inode
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string skipped;
    int on = 0;
    uid_t owner = 0;
    fields >> skipped >> skipped >> skipped >> skipped >> on >> skipped >> skipped >> owner;
    if (fields && on == index && owner == user) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<InterfaceOwner> InterfaceOwner::claim(const std::string& interface, int index,
                                                      const MacAddr& mac, std::string& error) {
  const Address address(index, mac);
  const int fd = unix_socket();
  std::unique_ptr<InterfaceOwner> owner(new InterfaceOwner(fd));
  if (fd >= 0 && ::bind(fd, address.get(), address.size) == 0 && ::listen(fd, 1) == 0) return owner;
  if (fd < 0 || errno != EADDRINUSE) {
    error = std::string("no socket to say who owns the interface: ") + std::strerror(errno);
    return nullptr;
  }
  const ucred other = listener_at(address);
  if (!has_packet_socket(other.uid, index)) return owner;  // a name without a packet socket
  error = "interface " + interface + " has an owner: " + program_name(other.pid) + ", pid " +
          std::to_string(other.pid) + "; end it, reach its link (stpd:) instead, or take another " +
          "address here (mac=)";
  return nullptr;
}

InterfaceOwner::~InterfaceOwner() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace stp::port
