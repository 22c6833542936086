// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/listeners.h"

#include <cerrno>
#include <string>

#include "libst/udapl/core/qualifier.h"
#include "libst/udapl/core/service_point.h"

namespace stp::udapl {

int Listeners::add(stm_domain_t domain, stm_queue_t queue,
                   const std::shared_ptr<ServicePoint>& point) {
  const auto number = port_of(point->conn_qual());
  const auto known = by_port_.find(number);
  if (known != by_port_.end())
    return known->second.points.emplace(point->conn_qual(), point).second ? 0 : -EADDRINUSE;
  Listener made{nullptr, ++listened_ << 32 | number, {{point->conn_qual(), point}}};
  const auto port = ":" + std::to_string(number);
  const auto error = stm_listen(domain, port.c_str(), queue, made.context, 0, &made.handle);
  if (error == 0) by_port_.emplace(number, std::move(made));
  return error;
}

void Listeners::remove(const ServicePoint& point) {
  const auto at = by_port_.find(port_of(point.conn_qual()));
  if (at == by_port_.end()) return;
  at->second.points.erase(point.conn_qual());
  if (!at->second.points.empty()) return;
  stm_listener_close(at->second.handle);
  by_port_.erase(at);
}

void Listeners::forget() {
  by_port_.clear();
}

std::shared_ptr<ServicePoint> Listeners::find(std::uint64_t conn_qual) const {
  const auto at = by_port_.find(port_of(conn_qual));
  if (at == by_port_.end()) return nullptr;
  const auto& points = at->second.points;
  const auto point = points.find(conn_qual);
  return point == points.end() ? nullptr : point->second;
}

std::shared_ptr<ServicePoint> Listeners::asked(std::uint64_t context,
                                               std::optional<std::uint64_t> conn_qual) const {
  const auto at = by_port_.find(static_cast<std::uint32_t>(context));
  if (at == by_port_.end() || at->second.context != context) return nullptr;
  const auto& points = at->second.points;
  const auto point = points.find(conn_qual.value_or(at->first));
  return point == points.end() ? nullptr : point->second;
}

}  // namespace stp::udapl
