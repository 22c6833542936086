// SPDX-License-Identifier: BSD-3-Clause
// What one shard uses of a link's device: its queues, its pool of mbufs, and the two halves that
// move frames between the queues and the engine. The first shard is the device's owner; the others
// enter before they use it.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <memory>
#include <span>
#include <string>

#include "dpdk_port/link/arp.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/port.h"
#include "stp/node/node.h"
#include "stp/types.h"

namespace stp::port {

// Pools of mbufs.
struct FreePool {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using MbufPool = std::unique_ptr<rte_mempool, FreePool>;

// Who takes and returns mbufs: one thread at a time, or also threads of the driver.
enum class PoolUse { kOneThread, kAnyThread };

// `data_room`: bytes of a frame that fit one mbuf; 0: for attached memory only. nullptr: see
// rte_errno.
MbufPool make_mbuf_pool(const std::string& name, unsigned count, std::size_t data_room,
                        PoolUse use);

class Device;

class alignas(kCacheLine) DeviceShare {
 public:
  static constexpr unsigned kOwner = 0;

  DeviceShare(Device& device, PortShare of)
      : device_(device), of_(of), next_(of.index), inside_(of.index == kOwner) {}

  // False: the device does not run, or is being changed. Then nothing is sent or received.
  bool enter();
  void leave();

  // As Device::runs(), from enter() to leave().
  [[nodiscard]] bool runs() const;
  // Has queues to send on, as far as is known. Else its frames leave through the owner.
  [[nodiscard]] bool sends() const {
    return of_.index == kOwner || (may_send_ && (!inside_ || has_queues()));
  }
  // As rte_eth_tx_burst and rte_eth_rx_burst. Only while it runs.
  std::uint16_t send(rte_mbuf** mbufs, std::uint16_t count);
  // The mbufs of the frames that were sent are the caller's again, who may fill them anew: to free
  // and allocate them takes as long as to copy a short frame.
  [[nodiscard]] bool returns_mbufs() const;
  // With `rests` an mbuf may have only the head of a frame: the place of the same number there
  // says where the other bytes are, until release(). Pass all that was received to release()
  // before the next receive().
  std::uint16_t receive(rte_mbuf** mbufs, Bytes* rests, std::uint16_t count);
  void release(rte_mbuf** mbufs, std::uint16_t count);

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] PortShare of() const { return of_; }
  [[nodiscard]] rte_mempool* pool() const { return pool_.get(); }
  void set_pool(MbufPool pool) { pool_ = std::move(pool); }
  // Decides whether it may ever have queues to send on, when the device has been opened.
  void settle();

 private:
  [[nodiscard]] bool has_queues() const;
  std::uint16_t send_by_port(const QueuesToSend& queues, rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive_whole(rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive_in_turn(rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive_copies(rte_mbuf** mbufs, Bytes* rests, std::uint16_t count);

  Device& device_;
  const PortShare of_;
  MbufPool pool_;
  std::array<rte_mbuf*, kBurst> landing_{};  // of a memif: what frames are copied into, for good
  unsigned next_;                            // the queue to look at first
  bool inside_, may_send_ = true;
};

// The receiving half of a shard's queues.
class Receiver {
 public:
  // `seat`: passes frames to other shards; nullptr: there are none.
  Receiver(DeviceShare& share, Arp& arp, Seat* seat);

  // Passes received frames to the engine and to the shards they belong to, at most kTurnBursts *
  // kBurst frames plus one burst. Returns the number of frames moved.
  unsigned run(Engine& engine, Tap* tap, Time now);

  [[nodiscard]] const ReceiveCounters& counters() const { return counters_; }

 private:
  bool take_arp(Bytes frame, Time now);
  bool hand_over(Bytes frame, Bytes rest);
  Bytes frame_of(const rte_mbuf* mbuf, std::byte* buffer);

  DeviceShare& share_;
  Arp& arp_;
  Seat* const seat_;
  FrameBuffers joined_;  // one frame per place in a burst
  // Those of the present burst: kept, because clearing them would take longer than a short frame.
  std::array<Bytes, kBurst> rests_;
  std::array<LoopedFrame, kBurst> frames_;
  const std::uint16_t burst_;
  ReceiveCounters counters_;
};

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

// The sending half of a shard's queues, or of its way through the shard that owns the device. Each
// frame taken from the Node is sent, kept and sent first in the next turn, or counted as dropped.
class Transmitter {
 public:
  // How long a link may refuse frames before they are dropped, as with a pulled cable. Afterwards
  // frames are dropped at once until the link takes one again.
  static constexpr Time kPatience = 100 * kMillisecond;

  // `seat`: passes frames to and from other shards; nullptr: there are none.
  Transmitter(DeviceShare& share, Arp& arp, Loopback& loopback, Seat* seat);
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
  rte_mbuf* take_spare(std::size_t spare);
  void take_back(std::uint16_t sent);
  void return_tokens(Engine& engine);
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
  std::array<rte_mbuf*, kBurst> spares_{};   // empty heads; nullptr: it is filled, or not there yet
  std::size_t missing_ = kBurst;             // of them
  std::array<TxFrame, kBurst> frames_;       // the spares, as passed to the engine
  std::array<rte_mbuf*, kBurst> pending_{};  // built, not yet taken by the driver
  std::array<std::uint8_t, kBurst> pending_places_{};  // where they were among the spares
  std::uint16_t pending_count_ = 0;
  Time refusing_since_ = kNever;
  TransmitCounters counters_;
};

}  // namespace stp::port
