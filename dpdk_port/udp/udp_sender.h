// SPDX-License-Identifier: BSD-3-Clause
// Sends the Node's frames as datagrams: what follows their Ethernet header. Datagrams of equal
// length to one station leave in one call, which the kernel or the NIC cuts apart; user memory is
// copied once, by the kernel, or if they are short, twice. Each frame taken from the Node is sent,
// kept and sent first in the next turn, or counted as dropped.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <span>
#include <vector>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/port.h"
#include "dpdk_port/udp/departures.h"
#include "dpdk_port/udp/favored_peer.h"
#include "dpdk_port/udp/packet_view.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_socket.h"
#include "dpdk_port/udp/udp_ways.h"

namespace stp::port {

class UdpSender {
 public:
  // How long the socket may be full before what waits is dropped.
  static constexpr Time kPatience = 100 * kMillisecond;

  // `seat`: nullptr, or that of one of several shards.
  UdpSender(UdpSocket& socket, FavoredPeer& favored, Peers& peers, UdpWays& ways,
            Loopback& loopback, const MacAddr& own, std::size_t frame_room, Seat* seat);

  // Sends what waits, then frames of the engine. Returns the number of frames moved.
  unsigned run(Engine& engine, Tap* tap, Time now);
  [[nodiscard]] bool is_waiting() const { return next_ < waiting_.size(); }

  [[nodiscard]] const UdpSendCounters& counters() const { return counters_; }

 private:
  // What the kernel cuts apart at most, and what one datagram may be cut from.
  static constexpr std::size_t kBurstSize = 64;
  static constexpr std::size_t kBursts = Loopback::kCapacity / kBurstSize;
  // A turn goes on beyond those while each of them fills a call, until so many bytes have left: a
  // look for answers after each call would take a tenth of its time. Two bursts of 63 STUs of 8 KiB
  // are more. With a third one what a fast receiver grants at a time is sent before its next grants
  // are looked for, and the last call is not full.
  static constexpr std::size_t kTurnBytes = 1'000'000;
  // Datagrams of up to so many bytes that leave in one call are copied behind each other first: a
  // copy more costs less than so many short pieces cost the kernel.
  static constexpr std::size_t kGathered = 2'200;
  // More RTS than so many stay where they are.
  static constexpr std::ptrdiff_t kFewRequests = 8;
  // A call of so many bytes is full.
  static constexpr std::size_t kFull = 32 << 10;

  struct Datagram {
    MacAddr to;
    bool connected;     // it shows that the Node has a connection with that station
    Presence presence;  // whether the station is there
    bool may_be_marked;
    iovec pieces[2];
    std::byte* end;  // of what was built here: there is room for the rest of the frame
    TxToken token;
    [[nodiscard]] Bytes head() const {
      return {static_cast<const std::byte*>(pieces[0].iov_base), pieces[0].iov_len};
    }
    [[nodiscard]] std::size_t size() const { return pieces[0].iov_len + pieces[1].iov_len; }
    // Whether both may leave in one call, but for their length.
    [[nodiscard]] bool goes_with(const Datagram& other) const {
      return to == other.to && may_be_marked == other.may_be_marked;
    }
    [[nodiscard]] bool is_like(const Datagram& other) const {
      return size() == other.size() && goes_with(other);
    }
  };

  unsigned take(Engine& engine, Tap* tap, Time now);
  void bring_together();
  void put_requests_last();
  void loop(const TxFrame& frame);
  void show(Tap& tap, const MacAddr& to, Bytes payload, Bytes attached, Time now);
  void flush(Engine& engine, Time now);
  std::size_t next_run();
  void choose_socket(std::span<const Datagram> run);
  bool says_own();
  static bool asks_for_long(std::span<const Datagram> run);
  [[nodiscard]] bool is_crowded(std::span<const Datagram> run, Time now);
  std::size_t send_crowded(std::span<Datagram> run, Time now);
  int ask(std::span<Datagram> first, UdpSocket& socket, Time now);
  std::size_t send_run(std::span<Datagram> run, Time now);
  std::size_t send_to(const InternetAddress& to, std::span<Datagram> run, Time now);
  bool send_lone(const Datagram& lone, Time now);
  void failed_alone(UdpSocket& socket, int error, Time now);
  std::size_t settle(int error, const InternetAddress& to, std::span<Datagram> run, Time now);
  std::size_t give_up(int error, const InternetAddress& to, std::span<Datagram> run, Time now);
  std::size_t list_pieces(std::span<const Datagram> run);
  std::size_t gather(std::span<const Datagram> run);
  std::size_t begin_control(const Datagram& first);
  static bool fills_a_call(std::span<const Datagram> run);
  int send_joined(std::span<Datagram> run);
  int send_singly(std::span<Datagram> run);

  UdpSocket& socket_;
  FavoredPeer& favored_;
  Peers& peers_;
  RecentGoal goal_;
  UdpWays& ways_;
  Loopback& loopback_;
  const MacAddr own_;
  Seat* const seat_;
  FrameBuffers buffers_;
  std::array<TxFrame, kBurstSize> frames_{};
  std::vector<Datagram> waiting_, sorted_;
  std::size_t next_ = 0;   // the first of waiting_ that has not left
  std::size_t alike_ = 0;  // so many of them, from its begin on, are known to be like the first
  std::size_t fills_ = 1;  // so many datagrams filled a call lately
  Time full_since_ = kNever;
  std::size_t full_bytes_ = 0;         // that have left in this turn in full calls
  RecentGoal::Address* to_ = nullptr;  // the station that is being sent to
  UdpSocket* by_ = &socket_;           // the socket that sends to it
  std::array<Departures, 3> departures_{Departures(system_random()), Departures(system_random()),
                                        Departures(system_random())};  // by Presence
  Departures* leaves_ = &departures_[0];                               // of by_
  bool asks_ = false;  // whether what is being sent leaves
  std::vector<std::byte> gathered_ = std::vector<std::byte>(kLongestDatagram);
  std::array<iovec, 2 * kBurstSize> pieces_{};
  std::array<mmsghdr, kBurstSize> messages_{};
  alignas(cmsghdr)
      std::array<std::byte, UdpSocket::kOwnControl + 96 + UdpSocket::kAskControl> control_{};
  std::vector<TxToken> tokens_;
  PacketView view_{socket_.has_ports()};
  UdpSendCounters counters_;
};

}  // namespace stp::port
