// SPDX-License-Identifier: BSD-3-Clause
// Receives datagrams: several in one call, each perhaps of many that the kernel has joined. It
// copies a Schedule Header behind the Ethernet header that the Node expects; everything else stays
// where the kernel has written it. What belongs to another shard is handed to it: the kernel looks
// at the first of several datagrams that it has joined, and the others may be for anybody.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_buffers.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/port.h"
#include "dpdk_port/udp/packet_view.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_socket.h"
#include "dpdk_port/udp/udp_ways.h"

namespace stp::port {

class UdpReceiver {
 public:
  // `seat`: nullptr, or that of one of several shards; `steered`: the kernel picks their sockets.
  UdpReceiver(UdpSocket& socket, Peers& peers, UdpWays& ways, const MacAddr& own, Seat* seat,
              bool steered);

  // Returns the number of datagrams.
  unsigned run(Engine& engine, Tap* tap, Time now);

  [[nodiscard]] const UdpReceiveCounters& counters() const { return counters_; }

 private:
  // A call's worth: what it copies is still in the nearest cache when the Node copies it on.
  static constexpr std::size_t kMessages = 4, kBufferSize = 65'536;
  static constexpr std::size_t kFrames = 64;

  int receive(Time now);
  [[nodiscard]] Bytes data_of(std::size_t message) const;
  unsigned take(std::size_t message, Engine& engine, Tap* tap, Time now);
  void add(Bytes datagram, const MacAddr& from);
  bool hand_over(const LoopedFrame& frame);
  void deliver(Engine& engine, Time now);

  UdpSocket& socket_;
  RecentSource source_;
  UdpWays& ways_;
  const MacAddr own_;
  Seat* const seat_;
  const bool steered_;
  FrameBuffers buffers_{kMessages, kBufferSize};
  FrameBuffers heads_;
  std::array<sockaddr_storage, kMessages> names_{};
  std::array<iovec, kMessages> pieces_{};
  struct alignas(cmsghdr) Control {
    std::array<std::byte, 64 + UdpSocket::kOwnControl> bytes;
  };
  std::array<Control, kMessages> controls_{};
  std::array<mmsghdr, kMessages> messages_{};
  std::array<LoopedFrame, kFrames> frames_;
  bool was_empty_ = false;  // at the last call
  std::size_t count_ = 0;   // frames that the Node has not seen
  PacketView view_{socket_.has_ports()};
  UdpReceiveCounters counters_;
};

}  // namespace stp::port
