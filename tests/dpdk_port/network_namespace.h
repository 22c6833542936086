// SPDX-License-Identifier: BSD-3-Clause
// A private network namespace for a test, with a pair of joined interfaces. It ends with the
// object.
#pragma once

#include <string>

namespace stp::port {

class NetworkNamespace {
 public:
  NetworkNamespace();
  ~NetworkNamespace();
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  // Why the namespace could not be made, or "".
  [[nodiscard]] const std::string& missing() const { return missing_; }
  // Runs `ip` with these arguments inside the namespace.
  static bool ip(const std::string& arguments);
  // Makes stp0 and stp1 with this MTU, sets them up, and returns when they have a carrier.
  static bool make_veth(unsigned mtu);

 private:
  int outside_ = -1;
  std::string missing_;
};

}  // namespace stp::port
