// SPDX-License-Identifier: BSD-3-Clause
#include "tests/dpdk_port/network_namespace.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace stp::port {
namespace {

bool runs(int socket, const char* name) {
  ifreq request = {};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

}  // namespace

NetworkNamespace::NetworkNamespace() {
  outside_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (unshare(CLONE_NEWNET) != 0) {
    missing_ = std::string("needs a network namespace of its own (root): ") + std::strerror(errno);
  } else if (!ip("link set lo up")) {
    missing_ = "needs the ip command of iproute2";
  }
}

NetworkNamespace::~NetworkNamespace() {
  if (outside_ < 0) return;
  if (missing_.empty() && setns(outside_, CLONE_NEWNET) != 0) std::abort();
  close(outside_);
}

bool NetworkNamespace::ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " >/dev/null 2>&1").c_str()) == 0;
}

bool NetworkNamespace::make_veth(unsigned mtu) {
  const std::string with_mtu = " mtu " + std::to_string(mtu);
  if (!ip("link add stp0" + with_mtu + " type veth peer name stp1" + with_mtu) ||
      !ip("link set stp0 up") || !ip("link set stp1 up"))
    return false;
  // A kernel thread tells that they have a carrier, on a busy machine after a while.
  const int asks = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (int i = 0; i < 100'000 && !(runs(asks, "stp0") && runs(asks, "stp1")); ++i) usleep(100);
  const bool run = runs(asks, "stp0") && runs(asks, "stp1");
  close(asks);
  return run;
}

}  // namespace stp::port
