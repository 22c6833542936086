// SPDX-License-Identifier: BSD-3-Clause
// Sending and receiving. The two sides own slots of the transmit ring in turn: an available slot is
// ours; a slot with a request is the kernel's from the next send call on. The kernel sends in slot
// order from where it stopped. It stops at a frame that the device refuses and retries that frame
// with each call, without end, so we must take it back.

#include "dpdk_port/dpdk/device.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "dpdk_port/link/interfaces.h"
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

// Sets up a PacketSocket and finds its interface again.

namespace {

// The kernel writes each frame into a slot after its own header. Slot sizes are powers of two, so
// that slots divide a block. A ring has the same size for any slot size. The receive ring is the
// longer one: while the polling thread is not scheduled, it has to hold all that was granted, and
// then was granted once more because the peers seemed silent.
// protocol: 10.12
constexpr std::size_t kSlotHeader = 128, kLeastSlot = 2048, kLeastBlock = 4096;
constexpr std::size_t kReceiveRing = std::size_t{16} << 20, kSendRing = std::size_t{8} << 20;

constexpr std::uint32_t kArp = 0x0806, kBareFrames = 0x88b5;  // IEEE 802's for local experiments
constexpr std::uint32_t kLongestLength = 1500;                // above: a type
constexpr std::uint32_t kSnap = 0xaaaa0300;

std::string failure(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

bool set(int fd, int option, int value) {
  return ::setsockopt(fd, SOL_PACKET, option, &value, sizeof value) == 0;
}

ifreq request_for(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return request;
}

}  // namespace

std::unique_ptr<PacketSocket> PacketSocket::open(const Config& config, std::string& error) {
  std::unique_ptr<PacketSocket> socket(new PacketSocket(config));
  // It receives nothing until bound, so no frames of other interfaces.
  socket->fd_ = open_packet_socket();
  if (socket->fd_ < 0) {
    error = failure("a packet socket does not open");
    return nullptr;
  }
  if (!socket->make_rings(error) || !socket->bind_to_interface(error)) return nullptr;
  return socket;
}

PacketSocket::~PacketSocket() {
  if (rings_ != nullptr) ::munmap(rings_, (rx_slots_ + tx_slots_) * slot_size_);
  if (fd_ >= 0) close_packet_socket(fd_);
}

bool PacketSocket::make_rings(std::string& error) {
  slot_size_ = std::max(std::bit_ceil(config_.room + kSlotHeader), kLeastSlot);
  rx_slots_ = kReceiveRing / slot_size_;
  tx_slots_ = kSendRing / slot_size_;
  const std::size_t block = std::max(slot_size_, kLeastBlock);
  const auto make = [&](int ring, std::size_t bytes, std::size_t slots) {
    const tpacket_req request{.tp_block_size = static_cast<unsigned>(block),
                              .tp_block_nr = static_cast<unsigned>(bytes / block),
                              .tp_frame_size = static_cast<unsigned>(slot_size_),
                              .tp_frame_nr = static_cast<unsigned>(slots)};
    return ::setsockopt(fd_, SOL_PACKET, ring, &request, sizeof request) == 0;
  };
  if (!set(fd_, PACKET_VERSION, TPACKET_V2) || !set_filter() ||
      !make(PACKET_RX_RING, kReceiveRing, rx_slots_) ||
      !make(PACKET_TX_RING, kSendRing, tx_slots_)) {
    error = failure("the kernel does not make rings for frames");
    return false;
  }
  if (!config_.qdisc) set(fd_, PACKET_QDISC_BYPASS, 1);
  set(fd_, PACKET_IGNORE_OUTGOING, 1);  // unknown to kernels before 4.20
  void* const memory = ::mmap(nullptr, (rx_slots_ + tx_slots_) * slot_size_, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) {
    error = failure("the rings for frames cannot be mapped");
    return false;
  }
  rings_ = static_cast<std::byte*>(memory);
  watched_ = config_.room + 1;
  return true;
}

// STP in both forms, and ARP: whatever else the host receives must not fill the ring. The kernel
// has taken a tag out of a frame before. protocol: 2.2, 2.3, 2.11
bool PacketSocket::set_filter() const {
  constexpr std::uint16_t kLoadHalf = BPF_LD | BPF_H | BPF_ABS, kLoad = BPF_LD | BPF_W | BPF_ABS;
  constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K, kAbove = BPF_JMP | BPF_JGT | BPF_K;
  constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
  constexpr std::uint32_t kAll = 0x40000;
  sock_filter program[]{{kLoadHalf, 0, 0, 12},
                        {kEqual, 7, 0, wire::kEtherType},
                        {kEqual, 6, 0, kArp},
                        {kEqual, 5, 0, kBareFrames},
                        {kAbove, 5, 0, kLongestLength},
                        {kLoad, 0, 0, 14},
                        {kEqual, 0, 3, kSnap},
                        {kLoad, 0, 0, 18},
                        {kEqual, 0, 1, wire::kEtherType},
                        {kReturn, 0, 0, kAll},
                        {kReturn, 0, 0, 0}};
  const sock_fprog filter{.len = sizeof program / sizeof program[0], .filter = program};
  return ::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

bool PacketSocket::bind_to_interface(std::string& error) {
  const InterfaceWatch::Facts& facts = watch_.facts();
  if (facts.index == 0) {
    error = "there is no interface " + config_.interface;
    return false;
  }
  if (facts.index != index_) {
    owner_.reset();
    index_ = 0;
    owner_ = InterfaceOwner::claim(config_.interface, facts.index, config_.mac, error);
    if (!owner_) return false;
    index_ = facts.index;
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = facts.index;
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    error = failure("the socket cannot be bound to " + config_.interface);
    return false;
  }
  packet_mreq membership{};
  membership.mr_ifindex = facts.index;
  if (!own_) own_ = facts.mac;
  address_changed_ = facts.mac != *own_;
  if (facts.mac == config_.mac) return true;
  membership.mr_type = PACKET_MR_PROMISC;
  if (::setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) == 0) {
    return true;
  }
  error =
      failure("frames for another address than that of " + config_.interface + " cannot be heard");
  return false;
}

// The interface may be the same one, up again, or a new one of that name.
void PacketSocket::seek() {
  watch_.ask();
  obstacle_.clear();
  if (!watch_.facts().up) return;
  down_ = !bind_to_interface(obstacle_);  // will be retried
}

// Immediate, unlike IFF_RUNNING. A device that cannot report its carrier has one.
bool PacketSocket::has_carrier() const {
  ethtool_value value{.cmd = ETHTOOL_GLINK, .data = 0};
  ifreq request = request_for(config_.interface);
  request.ifr_data = reinterpret_cast<char*>(&value);
  return ::ioctl(fd_, SIOCETHTOOL, &request) != 0 || value.data != 0;
}

}  // namespace stp::port
