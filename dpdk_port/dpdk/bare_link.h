// SPDX-License-Identifier: BSD-3-Clause
// Frames of no protocol over the queue of a link: what it can do at best, for figures to be set
// beside. Free of DPDK types, as Port is.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/loopback.h"

namespace stp::port {

// The few bytes that such a frame begins with, behind its Ethernet header; what follows is
// whatever stood in the buffer.
struct BareFrame {
  MacAddr peer;  // its sender, or whom it is for
  std::uint32_t kind = 0;
  std::uint64_t number = 0, value = 0;
  std::size_t payload = 0;  // bytes behind the Ethernet header, at least kSmallest

  static constexpr std::size_t kSmallest = 46;  // what Ethernet carries at least
};

class BareLink {
 public:
  // nullptr: `error` names the link and the reason. Not for LinkKind::kStpd and kLoop.
  static std::unique_ptr<BareLink> open(const LinkConfig& config, std::string& error);
  virtual ~BareLink() = default;

  // The same frame `count` times, at most kBurst; returns how many the link has taken.
  virtual unsigned send(const BareFrame& frame, unsigned count) = 0;
  // What has arrived; frames of others are left out.
  virtual std::span<const BareFrame> receive() = 0;
  [[nodiscard]] virtual unsigned mtu() const = 0;
};

}  // namespace stp::port
