// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a shard's queues, or of its way through the shard that owns the device. Each
// frame taken from the Node is sent, kept and sent first in the next turn, or counted as dropped.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <span>
#include <string>

#include "dpdk_port/dpdk/device.h"
#include "dpdk_port/dpdk/device_share.h"
#include "dpdk_port/link/arp.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/port.h"
#include "stp/node/node.h"

namespace stp::port {

// User memory attached to frames. Each attachment holds the token of the memory until the driver
// has released the frame. Allocates nothing after construction.
class Attachments {
 public:
  // The drivers that get attachments release a frame inside the transmit call, so at most one burst
  // is attached at a time.
  static constexpr unsigned kCapacity = kBurst;
  static constexpr std::size_t kMaxLength = 65'535;  // of attached memory, in an mbuf

  Attachments() = default;
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  // False: see rte_errno. attach() fails until this has succeeded.
  bool open(const std::string& name);

  // Chains `memory` to the frame. False: not possible now; copy instead.
  bool attach(rte_mbuf* head, Bytes memory, const TxToken& token);

  // Tokens of the frames released since the last call. Valid until the next attach().
  std::span<const TxToken> take_released();

 private:
  struct Slot {
    rte_mbuf_ext_shared_info shared;
    Attachments* owner;
    TxToken token;
  };
  static void on_release(void* memory, void* slot);

  std::array<Slot, kCapacity> slots_;
  std::array<Slot*, kCapacity> free_;
  std::size_t free_count_ = 0;
  std::array<TxToken, kCapacity> released_;
  std::size_t released_count_ = 0;
  MbufPool pool_;  // mbufs without a buffer
};

class Transmitter {
 public:
  // How long a link may refuse frames before they are dropped, as with a pulled cable. Afterwards
  // frames are dropped at once until the link takes one again.
  static constexpr Time kPatience = 100 * kMillisecond;

  // `seat`: passes frames to and from other shards; nullptr: there are none.
  Transmitter(DeviceShare& share, Arp& arp, Loopback& loopback, Seat* seat)
      : share_(share),
        mac_(share.device().mac()),
        owns_(share.of().index == DeviceShare::kOwner),
        arp_(arp),
        loopback_(loopback),
        seat_(seat) {}
  ~Transmitter();
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // Attaches memory instead of copying from now on. False: see rte_errno.
  bool enable_attaching(const std::string& pool_name) { return attachments_.open(pool_name); }

  // Sends the waiting frames, then, as the owner, ARP's and those of other shards, and those of the
  // engine, up to kTurnBursts. Returns the number of frames moved.
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
  std::uint16_t give_to_owner();
  void drop_pending();

  DeviceShare& share_;
  const MacAddr mac_;
  const bool owns_;  // the device
  Arp& arp_;
  Loopback& loopback_;
  Seat* const seat_;
  Attachments attachments_;
  std::array<rte_mbuf*, kBurst> spares_{};  // empty heads: the first spare_count_
  std::size_t spare_count_ = 0;
  std::array<TxFrame, kBurst> frames_;       // the spares, as passed to the engine
  std::array<rte_mbuf*, kBurst> pending_{};  // built, not yet taken by the driver
  std::uint16_t pending_count_ = 0;
  Time refusing_since_ = kNever;
  TransmitCounters counters_;
};

}  // namespace stp::port
