// SPDX-License-Identifier: BSD-3-Clause
// Receives datagrams: several in one call, each perhaps of many that the kernel has joined. It
// copies a Schedule Header behind the Ethernet header that the Node expects; everything else stays
// where the kernel has written it.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_buffers.h"
#include "dpdk_port/port.h"
#include "dpdk_port/udp/packet_view.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_socket.h"

namespace stp::port {

struct UdpReceiveCounters {
  std::uint64_t datagrams = 0;
  std::uint64_t joined = 0;      // of these, received together with others
  std::uint64_t no_station = 0;  // dropped: their sender's address is not that of a host
};

class UdpReceiver {
 public:
  UdpReceiver(UdpSocket& socket, Peers& peers, const MacAddr& own);

  // Returns the number of datagrams.
  unsigned run(Engine& engine, Tap* tap, Time now);

  [[nodiscard]] const UdpReceiveCounters& counters() const { return counters_; }

 private:
  // A call's worth: what it copies is still in the nearest cache when the Node copies it on.
  static constexpr std::size_t kMessages = 4, kBufferSize = 65'536;
  static constexpr std::size_t kFrames = 64;

  int receive(Time now);
  unsigned take(std::size_t message, Engine& engine, Tap* tap, Time now);
  void add(Bytes datagram, const MacAddr& from);
  void deliver(Engine& engine, Time now);

  UdpSocket& socket_;
  Peers& peers_;
  const MacAddr own_;
  FrameBuffers buffers_{kMessages, kBufferSize};
  FrameBuffers heads_;
  std::array<sockaddr_storage, kMessages> names_{};
  std::array<iovec, kMessages> pieces_{};
  struct alignas(cmsghdr) Control {
    std::array<std::byte, 64> bytes;
  };
  std::array<Control, kMessages> controls_{};
  std::array<mmsghdr, kMessages> messages_{};
  std::array<LoopedFrame, kFrames> frames_;
  std::size_t count_ = 0;  // frames that the Node has not seen
  PacketView view_;
  UdpReceiveCounters counters_;
};

}  // namespace stp::port
