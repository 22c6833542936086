// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interface_watch.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "dpdk_port/link/interface.h"
#include "dpdk_port/link/ipv4_addresses.h"

namespace stp::port {

InterfaceWatch::InterfaceWatch(std::string name)
    : name_(std::move(name)), asking_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  ask();
}

InterfaceWatch::~InterfaceWatch() {
  if (asking_ >= 0) ::close(asking_);
}

// While the interface is absent, any new one may be it.
bool InterfaceWatch::look(Time now) {
  const auto concerns = [this](int index) { return index == facts_.index || facts_.index == 0; };
  return news_.look(concerns, now) && ask();
}

bool InterfaceWatch::ask() {
  const std::string name = name_of_interface(name_);
  ifreq answer{};
  name.copy(answer.ifr_name, sizeof answer.ifr_name - 1);
  const auto asked = [&](unsigned long what) { return ::ioctl(asking_, what, &answer) == 0; };
  Facts now;
  if (asked(SIOCGIFINDEX)) now.index = answer.ifr_ifindex;
  if (now.index != 0 && asked(SIOCGIFFLAGS)) {
    now.up = (answer.ifr_flags & IFF_UP) != 0;
    now.running = now.up && (answer.ifr_flags & IFF_RUNNING) != 0;
  }
  if (now.index != 0 && asked(SIOCGIFMTU)) now.mtu = static_cast<unsigned>(answer.ifr_mtu);
  if (now.index != 0 && asked(SIOCGIFHWADDR)) {
    std::memcpy(now.mac.octets.data(), answer.ifr_hwaddr.sa_data, now.mac.octets.size());
  }
  if (now.index != 0) now.address = first_address(name, now.index);
  // The kernel takes a lock to answer this. A line does not change its speed while it runs.
  const bool runs_on = facts_.running && facts_.index == now.index;
  if (now.running) now.megabits = runs_on ? facts_.megabits : ask_speed(name);
  return std::exchange(facts_, now) != now;
}

unsigned InterfaceWatch::ask_speed(const std::string& name) const {
  ethtool_cmd answer{};
  answer.cmd = ETHTOOL_GSET;
  ifreq question{};
  name.copy(question.ifr_name, sizeof question.ifr_name - 1);
  question.ifr_data = reinterpret_cast<char*>(&answer);
  if (::ioctl(asking_, SIOCETHTOOL, &question) != 0) return 0;
  const unsigned speed = ethtool_cmd_speed(&answer);
  return speed == static_cast<unsigned>(SPEED_UNKNOWN) ? 0 : speed;
}

LinkState InterfaceWatch::state() const {
  if (facts_.index == 0) return LinkState::kGone;
  if (!facts_.up) return LinkState::kDown;
  return facts_.running ? LinkState::kUp : LinkState::kNoCarrier;
}

}  // namespace stp::port
