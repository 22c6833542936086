// SPDX-License-Identifier: BSD-3-Clause
// A network namespace of the test's own, with a pair of joined interfaces. It goes with the object.
#pragma once

#include <string>

namespace stp::port {

class NetworkNamespace {
 public:
  NetworkNamespace();
  ~NetworkNamespace();
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  // Why there is none; "" when there is.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  // Runs `ip` with these arguments inside the namespace.
  static bool ip(const std::string& arguments);
  // stp0 and stp1, up, at this MTU.
  static bool make_veth(unsigned mtu);

 private:
  int outside_ = -1;
  std::string missing_;
};

}  // namespace stp::port
