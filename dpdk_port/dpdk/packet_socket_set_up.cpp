// SPDX-License-Identifier: BSD-3-Clause
// Sets up a PacketSocket and finds its interface again.
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

#include "dpdk_port/dpdk/packet_socket.h"
#include "dpdk_port/link/absence.h"
#include "stp/wire/layout.h"

namespace stp::port {
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
