// SPDX-License-Identifier: BSD-3-Clause
// The service points of an IA, and their listeners. Service points whose qualifiers map to the same
// port share a listener. Under the IA's mutex.
#pragma once

#include <stp/managed.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace stp::udapl {

class ServicePoint;

class Listeners {
 public:
  // 0 or a negative errno; -EADDRINUSE: the qualifier has a service point.
  int add(stm_domain_t domain, stm_queue_t queue, const std::shared_ptr<ServicePoint>& point);
  void remove(const ServicePoint& point);
  // Drops all listeners without stopping them.
  void forget();

  [[nodiscard]] std::shared_ptr<ServicePoint> find(std::uint64_t conn_qual) const;
  // Finds the service point for a request that came with `context` and asks for `conn_qual`, or for
  // the port alone. nullptr: none.
  [[nodiscard]] std::shared_ptr<ServicePoint> asked(std::uint64_t context,
                                                    std::optional<std::uint64_t> conn_qual) const;

 private:
  struct Listener {
    stm_listener_t handle = nullptr;
    std::uint64_t context = 0;
    std::map<std::uint64_t, std::shared_ptr<ServicePoint>> points;  // by qualifier
  };
  std::map<std::uint32_t, Listener> by_port_;
  // A context combines a number and the port: requests to an earlier listener of the port match no
  // service point.
  std::uint64_t listened_ = 0;
};

}  // namespace stp::udapl
