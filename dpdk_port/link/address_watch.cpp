// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/address_watch.h"

#include <net/if.h>

#include <utility>

#include "dpdk_port/link/own_addresses.h"

namespace stp::port {

AddressWatch::AddressWatch(LinkConfig config) : config_(std::move(config)) {
  std::string target = config_.target;
  if (target.starts_with('[') && target.ends_with(']'))
    target = target.substr(1, target.size() - 2);
  address_ = parse_internet_address(target);
  const auto percent = target.find('%');
  if (percent != std::string::npos)
    interface_ = target.substr(percent + 1);
  else if (!address_)
    interface_ = target;
  ask();
}

bool AddressWatch::look(Time now) {
  if (config_.target.empty() || now < look_at_) return false;
  look_at_ = now + kInterval;
  if (!news_.look([](int) { return true; }, now)) return false;
  const auto state = [this] { return absence_ ? absence_->state : LinkState::kUp; };
  const auto before = std::pair(state(), index_);
  ask();
  return std::pair(state(), index_) != before;
}

void AddressWatch::ask() {
  index_ = interface_.empty() ? 0 : ::if_nametoindex(interface_.c_str());
  absence_ = absence_now();
}

std::optional<Absence> AddressWatch::absence_now() const {
  if (config_.target.empty() || (address_ && address_->is_unspecified())) return std::nullopt;
  if (auto missing = absence_of(config_)) return missing;
  // An address that no interface has may be one of a whole network of this host, as 127.0.0.2 is.
  const std::string interface = interface_.empty() ? interface_with(*address_) : interface_;
  if (interface.empty()) return std::nullopt;
  const InterfaceWatch watch(interface);
  if (auto missing = absence_of(interface, watch.facts())) return missing;
  if (watch.state() != LinkState::kNoCarrier) return std::nullopt;
  return Absence{LinkState::kNoCarrier,
                 interface + " has no carrier: check the cable, and that the other end is up"};
}

}  // namespace stp::port
