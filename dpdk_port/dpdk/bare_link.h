// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives frames without a protocol over the queue of a link, to measure the link's best
// performance. Free of DPDK types, like Port.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link.h"

namespace stp::port {

// The start of such a frame, after its Ethernet header. The rest is whatever the buffer held.
struct BareFrame {
  MacAddr peer;  // sender or destination
  std::uint32_t kind = 0;
  std::uint64_t number = 0, value = 0;
  std::size_t payload = 0;  // bytes after the Ethernet header, at least kSmallest

  static constexpr std::size_t kSmallest = 46;  // Ethernet's minimum payload
};

class BareLink {
 public:
  // nullptr: `error` names the link and the reason. Not for LinkKind::kStpd and kLoop.
  static std::unique_ptr<BareLink> open(const LinkConfig& config, std::string& error);
  virtual ~BareLink() = default;

  // Sends the frame `count` times, at most kBurst. Returns the number that the link took.
  virtual unsigned send(const BareFrame& frame, unsigned count) = 0;
  // The BareFrames that have arrived; skips others.
  virtual std::span<const BareFrame> receive() = 0;
  [[nodiscard]] virtual unsigned mtu() const = 0;
};

}  // namespace stp::port
