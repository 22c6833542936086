// SPDX-License-Identifier: BSD-3-Clause
// Sending and receiving. The two sides own slots of the transmit ring in turn: an available slot is
// ours; a slot with a request is the kernel's from the next send call on. The kernel sends in slot
// order from where it stopped. It stops at a frame that the device refuses and retries that frame
// with each call, without end, so we must take it back.
#include "dpdk_port/dpdk/packet_socket.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stp/base/assert.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

// The offset of a frame to send in its slot, and the limit of a received frame.
constexpr std::size_t kSendAt = TPACKET2_HDRLEN - sizeof(sockaddr_ll);
constexpr std::size_t kAddresses = 12;

std::uint32_t status_of(const tpacket2_hdr* slot) {
  return __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
}

void set_status(tpacket2_hdr* slot, std::uint32_t status) {
  __atomic_store_n(&slot->tp_status, status, __ATOMIC_RELEASE);
}

std::byte* bytes_of(tpacket2_hdr* slot) {
  return reinterpret_cast<std::byte*>(slot);
}

bool waits(std::uint32_t status) {
  return (status & (TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT)) != 0;
}

void write_frame(tpacket2_hdr* slot, const rte_mbuf* mbuf) {
  slot->tp_len = mbuf->pkt_len;
  auto* to = bytes_of(slot) + kSendAt;
  for (; mbuf != nullptr; mbuf = mbuf->next) {
    std::memcpy(to, rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len);
    to += mbuf->data_len;
  }
}

bool has_tag(const tpacket2_hdr* slot) {
  return (slot->tp_status & TP_STATUS_VLAN_VALID) != 0;
}

// The kernel has removed the tag from the frame.
std::size_t read_frame(tpacket2_hdr* slot, std::byte* to) {
  const std::byte* const from = bytes_of(slot) + slot->tp_mac;
  if (!has_tag(slot)) {
    std::memcpy(to, from, slot->tp_snaplen);
    return slot->tp_snaplen;
  }
  std::memcpy(to, from, kAddresses);
  const bool told = (slot->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
  wire::store16(to + kAddresses, told ? slot->tp_vlan_tpid : 0x8100);
  wire::store16(to + kAddresses + 2, slot->tp_vlan_tci);
  std::memcpy(to + kAddresses + wire::kVlanSize, from + kAddresses, slot->tp_snaplen - kAddresses);
  return slot->tp_snaplen + wire::kVlanSize;
}

}  // namespace

tpacket2_hdr* PacketSocket::rx(std::size_t slot) const {
  STP_ASSERT(slot < rx_slots_, "a slot is one of the ring");
  return reinterpret_cast<tpacket2_hdr*>(rings_ + slot * slot_size_);
}

tpacket2_hdr* PacketSocket::tx(std::size_t slot) const {
  STP_ASSERT(slot < tx_slots_, "a slot is one of the ring");
  return reinterpret_cast<tpacket2_hdr*>(rings_ + (rx_slots_ + slot) * slot_size_);
}

std::uint16_t PacketSocket::receive(rte_mempool* pool, rte_mbuf** mbufs, std::uint16_t count) {
  std::uint16_t received = 0;
  while (received < count) {
    tpacket2_hdr* const slot = rx(rx_at_);
    if ((status_of(slot) & TP_STATUS_USER) == 0) break;
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
    if (mbuf == nullptr) {
      ++counters_.no_buffer;
      break;
    }
    const std::size_t length = slot->tp_len + (has_tag(slot) ? wire::kVlanSize : 0);
    if (slot->tp_snaplen == slot->tp_len && slot->tp_len >= kAddresses &&
        length <= rte_pktmbuf_tailroom(mbuf)) {
      const std::size_t stored = read_frame(slot, rte_pktmbuf_mtod(mbuf, std::byte*));
      mbuf->data_len = static_cast<std::uint16_t>(stored);
      mbuf->pkt_len = static_cast<std::uint32_t>(stored);
      mbufs[received++] = mbuf;
    } else {
      ++counters_.too_long;
      rte_pktmbuf_free(mbuf);
    }
    set_status(slot, TP_STATUS_KERNEL);
    rx_at_ = rx_at_ + 1 == rx_slots_ ? 0 : rx_at_ + 1;
  }
  counters_.received += received;
  return received;
}

std::uint16_t PacketSocket::send(rte_mbuf** mbufs, std::uint16_t count) {
  if (down_) return 0;
  std::uint16_t taken = 0;
  for (; taken < count; ++taken) {
    rte_mbuf* const mbuf = mbufs[taken];
    if (mbuf->pkt_len < watched_ || admit(mbuf->pkt_len)) {
      tpacket2_hdr* const slot = tx(tx_at_);
      if (status_of(slot) != TP_STATUS_AVAILABLE) break;
      STP_ASSERT(mbuf->pkt_len <= config_.room, "a frame fits its slot");
      write_frame(slot, mbuf);
      set_status(slot, TP_STATUS_SEND_REQUEST);
      tx_at_ = next_tx(tx_at_);
      ++counters_.sent;
    }
    rte_pktmbuf_free(mbuf);
  }
  kick();
  return taken;
}

// Handles a frame as long as a refused one. False: do not try to send it.
bool PacketSocket::admit(std::size_t length) {
  if (length >= limit_ || length > config_.room) {
    ++counters_.refused;
    return false;
  }
  probed_ = true;
  return true;
}

// Asks the kernel to send the ring. look() asks again for frames that remain.
void PacketSocket::kick() {
  waiting_ = refusing_ = false;
  while (::sendto(fd_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0) {
    switch (errno) {
      case EMSGSIZE: {  // longer than the interface's MTU, which has been lowered
        const std::size_t first = first_waiting();
        if (first == kNone) return;
        skip(first);
        break;
      }
      case ENETDOWN:
      case ENXIO:
        return go_down();
      case EINTR:
        break;
      default:
        waiting_ = true;
        refusing_ = errno == ENOBUFS;
        return;
    }
  }
}

// The slot where the kernel stopped. kNone: nothing waits.
std::size_t PacketSocket::first_waiting() const {
  std::size_t slot = tx_at_;
  for (std::size_t i = 0; i < tx_slots_; ++i, slot = next_tx(slot)) {
    if (waits(status_of(tx(slot)))) return slot;
  }
  return kNone;
}

// Takes back that frame and all after it that are at least as long; shorter ones move up. True:
// there are shorter ones.
bool PacketSocket::skip(std::size_t first) {
  STP_ASSERT(first != kNone, "a frame that is taken back waits in the ring");
  const std::size_t length = tx(first)->tp_len;
  std::size_t from = first, to = first;
  do {
    tpacket2_hdr* const slot = tx(from);
    if (slot->tp_len < length) {
      std::memcpy(bytes_of(tx(to)) + kSendAt, bytes_of(slot) + kSendAt, slot->tp_len);
      tx(to)->tp_len = slot->tp_len;
      to = next_tx(to);
    } else {
      ++counters_.refused;
      --counters_.sent;
    }
    set_status(slot, TP_STATUS_AVAILABLE);
    from = next_tx(from);
  } while (from != tx_at_);
  tx_at_ = to;
  for (std::size_t slot = first; slot != to; slot = next_tx(slot)) {
    set_status(tx(slot), TP_STATUS_SEND_REQUEST);
  }
  refused_length_ = refused_length_ == 0 ? length : std::min(refused_length_, length);
  watched_ = refused_length_;
  probed_ = false;
  return to != first;
}

// Handles a frame that blocks the ring for long: either it is too long, or the device takes none.
void PacketSocket::look_at_refused(Time now) {
  const std::size_t first = first_waiting();
  if (first != stuck_) {
    stuck_ = first;
    stuck_since_ = now;
    return;
  }
  if (first == kNone || now - stuck_since_ < kRefused) return;
  stuck_since_ = now;
  if (!has_carrier()) return;  // sent when the cable is back
  stuck_ = kNone;
  const std::size_t length = tx(first)->tp_len;
  const bool shorter_ones = skip(first);
  kick();
  if (!shorter_ones || refusing_) return;
  limit_ = length;
  probe_at_ = now + probe_pause_;
  probe_pause_ = std::min(2 * probe_pause_, kLastProbe);
}

// The socket reports when its interface goes down; the kernel's messages also report when it comes
// back. They arrive in any order.
void PacketSocket::look_at_interface(Time now) {
  // Reading clears the error; until then a thread that sleeps on the socket wakes at once.
  int error = 0;
  socklen_t size = sizeof error;
  const bool told = ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0;
  if (told && error == ENETDOWN && !down_) go_down();
  const unsigned mtu = watch_.facts().mtu;
  const bool changed = watch_.look(now);
  const InterfaceWatch::Facts& facts = watch_.facts();
  if (facts.mtu > mtu) forget_refusal();
  if (changed && !down_ && (!facts.up || facts.index != index_)) go_down();
  const bool other_address = !down_ && own_ && address_changed_ != (facts.mac != *own_);
  if ((!down_ || !facts.up) && !other_address) return;
  if (!changed && now < seek_at_) return;
  seek_at_ = now + kSeek;
  seek();
}

void PacketSocket::look(Time now) {
  look_at_ = now + kLook;
  if (owner_ && now >= tend_owner_at_) {
    tend_owner_at_ = now + kTendOwner;
    owner_->tend();
  }
  look_at_interface(now);
  if (down_) return;
  if (waiting_) kick();
  if (refusing_) return look_at_refused(now);
  stuck_ = kNone;
  if (now >= probe_at_) {
    limit_ = kNone;
    probe_at_ = kNever;
  }
  if (probed_ && !waiting_) forget_refusal();  // the probe has been sent
}

// Assumes that frames of every length pass again.
void PacketSocket::forget_refusal() {
  refused_length_ = 0;
  limit_ = kNone;
  watched_ = config_.room + 1;
  probe_pause_ = kFirstProbe;
  probed_ = false;
}

// Waiting frames would be stale when the interface is back.
void PacketSocket::go_down() {
  down_ = true;
  waiting_ = refusing_ = false;
  seek_at_ = 0;
  const std::size_t first = first_waiting();
  if (first == kNone) return;
  std::size_t slot = first;
  do {
    set_status(tx(slot), TP_STATUS_AVAILABLE);
    ++counters_.refused;
    --counters_.sent;
    slot = next_tx(slot);
  } while (slot != tx_at_);
  tx_at_ = first;
}

const PacketCounters& PacketSocket::counters() {
  tpacket_stats stats{};  // since the last call
  socklen_t size = sizeof stats;
  if (::getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
    counters_.missed += stats.tp_drops;
  }
  return counters_;
}

}  // namespace stp::port
