// SPDX-License-Identifier: BSD-3-Clause
// All addresses of this host: those in the network namespace of this process.
#pragma once

#include <utility>
#include <vector>

#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/internet_address.h"

namespace stp::port {

// Asks the kernel for the list only when something about interfaces has changed: on a host with
// thousands of addresses the list takes milliseconds. One thread at a time.
class HostAddresses {
 public:
  // Whether that interface has the address, whatever its port; 0: any interface.
  bool has(const InternetAddress& address, unsigned interface, Time now);

 private:
  void read();

  InterfaceNews news_;
  bool known_ = false;
  std::vector<std::pair<InternetAddress, unsigned>> all_;  // in order; ports are 0
};

}  // namespace stp::port
