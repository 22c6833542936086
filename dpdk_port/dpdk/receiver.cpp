// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/receiver.h"

#include <algorithm>
#include <optional>

#include "dpdk_port/link/vlan.h"
#include "stp/base/assert.h"

namespace stp::port {
namespace {

Bytes segment(const rte_mbuf* mbuf) {
  return {rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len};
}

// Some drivers take a frame's tag out.
std::optional<std::uint16_t> removed_tag(const rte_mbuf* mbuf) {
  if ((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0) return std::nullopt;
  return mbuf->vlan_tci;
}

// Receives fewer long frames at a time, so that frames copied into mbufs by a driver are still in
// the nearest caches when they are copied out.
std::uint16_t burst_of(std::size_t frame) {
  constexpr std::size_t kBytes = 64 * 1024, kLeast = 4;
  return static_cast<std::uint16_t>(std::clamp(kBytes / frame, kLeast, kBurst));
}

}  // namespace

Receiver::Receiver(DeviceShare& share, Arp& arp, Seat* seat)
    : share_(share),
      arp_(arp),
      seat_(seat),
      joined_(kBurst, frame_room(share.device().mtu())),
      burst_(burst_of(joined_.room())) {}

unsigned Receiver::run(Engine& engine, Tap* tap, Time now) {
  if (!share_.runs()) return 0;
  unsigned moved = 0;
  while (moved < kBurst * kTurnBursts) {
    std::array<rte_mbuf*, kBurst> mbufs;
    const std::uint16_t count = share_.receive(mbufs.data(), burst_);
    STP_ASSERT(count <= burst_, "a driver gives no more than it was asked for");
    if (count == 0) break;
    std::array<Bytes, kBurst> frames;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes frame = frame_of(mbufs[i], joined_.at(i));
      if (frame.empty()) continue;
      if (!is_of_vlan(frame, removed_tag(mbufs[i]), share_.device().spec().vlan)) {
        ++counters_.other_vlan;
        continue;
      }
      if (tap != nullptr) tap->frame(frame, {}, false);
      if (take_arp(frame, now) || hand_over(frame)) continue;
      frames[kept++] = frame;
    }
    if (seat_ != nullptr) seat_->publish();
    if (kept > 0) engine.receive(std::span(frames).first(kept), now);
    rte_pktmbuf_free_bulk(mbufs.data(), count);
    moved += count;
    if (count < burst_) break;
  }
  return moved;
}

// The owner sends the answer.
bool Receiver::take_arp(Bytes frame, Time now) {
  if (!arp_.receive(frame, now)) return false;
  if (seat_ != nullptr) seat_->crossing().wake(Crossing::kOwner);
  return true;
}

// True: it belongs to another shard.
bool Receiver::hand_over(Bytes frame) {
  if (seat_ == nullptr) return false;
  const unsigned owner = seat_->owner_of(frame);
  if (owner == seat_->shard()) return false;
  if (share_.device().steers() && Shards::port_of(frame) != 0) ++counters_.wrong_queue;
  seat_->give(owner, frame, {}, false);
  return true;
}

// Empty: drop the frame. Checks every length before using it.
Bytes Receiver::frame_of(const rte_mbuf* mbuf, std::byte* buffer) {
  if (mbuf->next == nullptr) return segment(mbuf);
  ++counters_.chained;
  std::size_t length = 0;
  for (; mbuf != nullptr; mbuf = mbuf->next) {
    const Bytes part = segment(mbuf);
    if (part.size() > joined_.room() - length) {
      ++counters_.oversize;
      return {};
    }
    std::copy(part.begin(), part.end(), buffer + length);
    length += part.size();
    STP_ASSERT(length <= joined_.room(), "a frame that is put together fits its buffer");
  }
  return {buffer, length};
}

}  // namespace stp::port
