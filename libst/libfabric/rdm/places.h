// SPDX-License-Identifier: BSD-3-Clause
// The places of those who send to an endpoint of FI_EP_RDM. Each connection has one. What peers
// have left whose connections have ended counts as connections that keep as much as they may: so
// peers that connect and go, again and again, do not leave more than those that stay. The last
// places are for hosts that have few, so that one host cannot keep all others out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "libst/libfabric/receives.h"

namespace stp::fi::rdm {

// Connections that an endpoint makes, and those of one host to it.
inline constexpr std::size_t kMostConnections = 1024;
// More that may be made to it, by hosts that have few.
inline constexpr std::size_t kForOthers = 128;

class Places {
 public:
  static constexpr std::size_t kMost = kMostConnections + kForOthers;
  // A host that has so many of them gets none of the last kForOthers.
  static constexpr std::size_t kFew = 16;

  // `most_kept`: bytes of messages that a connection keeps.
  explicit Places(std::size_t most_kept) : most_kept_(most_kept != 0 ? most_kept : 1) {}

  // What the peers of that host have here.
  std::shared_ptr<OfHost> of(const std::string& host) {
    if (hosts_.size() >= swept_at_) {
      std::erase_if(hosts_, [](const auto& each) { return each.second.expired(); });
      swept_at_ = 2 * hosts_.size() + kMostConnections;
    }
    auto& known = hosts_[host];
    auto has = known.lock();
    if (!has) known = has = std::make_shared<OfHost>();
    return has;
  }
  // Whether one more connection of that host may be made. `all`: what all hosts have.
  [[nodiscard]] bool is_free(const OfHost& has, const OfHost& all) const {
    const auto left = kMost - std::min(taken(all), kMost);
    return left > kForOthers || (left != 0 && taken(has) < kFew);
  }

 private:
  [[nodiscard]] std::size_t taken(const OfHost& has) const {
    return has.connections + has.left / most_kept_;
  }

  const std::size_t most_kept_;
  std::unordered_map<std::string, std::weak_ptr<OfHost>> hosts_;
  std::size_t swept_at_ = kMostConnections;
};

}  // namespace stp::fi::rdm
