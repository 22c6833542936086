// SPDX-License-Identifier: BSD-3-Clause
// The service points of an IA, and the listeners that they share where their qualifiers have one
// port. Under the IA's mutex.
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
  // Nothing listens any more, nor need be told so.
  void forget();

  [[nodiscard]] std::shared_ptr<ServicePoint> find(std::uint64_t conn_qual) const;
  // Whom a request means that came with `context` and asks for `conn_qual`, or for no other one
  // than the port. nullptr: nobody.
  [[nodiscard]] std::shared_ptr<ServicePoint> asked(std::uint64_t context,
                                                    std::optional<std::uint64_t> conn_qual) const;

 private:
  struct Listener {
    stm_listener_t handle = nullptr;
    std::uint64_t context = 0;
    std::map<std::uint64_t, std::shared_ptr<ServicePoint>> points;  // by qualifier
  };
  std::map<std::uint32_t, Listener> by_port_;
  // Contexts are a number above the port: requests to an earlier listener of it are nobody's.
  std::uint64_t listened_ = 0;
};

}  // namespace stp::udapl
