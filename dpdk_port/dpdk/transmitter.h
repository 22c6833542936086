// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a device's queue. A frame that was taken from the Node is sent, or kept and
// sent first the next turn, or counted as dropped: never lost silently.
#pragma once

#include <array>

#include "dpdk_port/dpdk/attachments.h"
#include "dpdk_port/dpdk/device.h"
#include "dpdk_port/link/arp.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/loopback.h"
#include "dpdk_port/port.h"

namespace stp::port {

struct TransmitCounters {
  std::uint64_t kept = 0;       // frames the driver had no room for, sent in a later turn
  std::uint64_t dropped = 0;    // frames given up: the link took nothing for kPatience
  std::uint64_t no_buffer = 0;  // turns without a free mbuf
};

class Transmitter {
 public:
  // How long a link may refuse frames before they are dropped, as a pulled cable would do. From
  // then on it gets no more patience until it takes a frame again.
  static constexpr Time kPatience = 100 * kMillisecond;

  // `seat`: where other shards' frames go, and theirs for the link come from; nullptr: there are
  // none.
  Transmitter(Device& device, Arp& arp, Loopback& loopback, Seat* seat)
      : device_(device), arp_(arp), loopback_(loopback), seat_(seat) {}
  ~Transmitter();
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // From now on memory is attached instead of copied. False: rte_errno.
  bool enable_attaching(const std::string& pool_name) { return attachments_.open(pool_name); }

  // Sends what waits, then what other shards and the engine have, up to kTurnBursts. Returns the
  // frames moved.
  unsigned run(Engine& engine, Tap* tap, Time now);

  [[nodiscard]] const TransmitCounters& counters() const { return counters_; }

 private:
  bool fill_spares();
  void take_arp(Tap* tap);
  unsigned take_frames(Engine& engine, Tap* tap, Time now);
  unsigned take_from_others(Tap* tap);
  bool loop(const TxFrame& frame);
  bool keep_frame(std::size_t spare, const TxFrame& frame, Tap* tap);
  unsigned flush(Time now);
  void drop_pending();

  Device& device_;
  Arp& arp_;
  Loopback& loopback_;
  Seat* const seat_;
  Attachments attachments_;
  std::array<rte_mbuf*, kBurst> spares_{};  // empty heads; those in front of spare_count_
  std::size_t spare_count_ = 0;
  std::array<TxFrame, kBurst> frames_;       // the spares, as the engine is offered them
  std::array<rte_mbuf*, kBurst> pending_{};  // built, not yet taken by the driver
  std::uint16_t pending_count_ = 0;
  Time refusing_since_ = kNever;
  TransmitCounters counters_;
};

}  // namespace stp::port
