// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_receiver.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dpdk_port/link/engine.h"
#include "stp/base/assert.h"
#include "stp/wire/ethernet.h"

namespace stp::port {
namespace {

constexpr std::size_t kDatagramHead = wire::kEthernetSize + wire::kHeaderSize;

// The length of all but the last datagram of a message; 0: it is one datagram.
std::size_t segment_of(const msghdr& message) {
  for (const cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr;
       at = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(at))) {
    if (at->cmsg_level != IPPROTO_UDP || at->cmsg_type != UDP_GRO) continue;
    int size = 0;
    std::memcpy(&size, CMSG_DATA(at), sizeof size);
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  return 0;
}

}  // namespace

UdpReceiver::UdpReceiver(UdpSocket& socket, Peers& peers, UdpWays& ways, const MacAddr& own,
                         Seat* seat, bool steered)
    : socket_(socket),
      source_(peers),
      ways_(ways),
      own_(own),
      seat_(seat),
      steered_(steered),
      heads_(kFrames, whole_cache_lines(kDatagramHead)) {
  for (std::size_t i = 0; i < kMessages; ++i) {
    pieces_[i] = {buffers_.at(i), kBufferSize};
    msghdr& message = messages_[i].msg_hdr;
    message.msg_name = &names_[i];
    message.msg_iov = &pieces_[i];
    message.msg_iovlen = 1;
    message.msg_control = controls_[i].bytes.data();
  }
}

unsigned UdpReceiver::run(Engine& engine, Tap* tap, Time now) {
  unsigned moved = 0;
  while (moved < kBurst * kTurnBursts) {
    const int count = receive(now);
    was_empty_ = count <= 0;
    if (was_empty_) break;
    for (int i = 0; i < count; ++i) moved += take(static_cast<std::size_t>(i), engine, tap, now);
    deliver(engine, now);
    if (seat_ != nullptr) seat_->publish();
    if (count < static_cast<int>(kMessages)) break;
  }
  return moved;
}

// A socket that was empty is asked for one message, without a second look at what is left: so a
// lone datagram, which may be what somebody waits for, is here sooner.
int UdpReceiver::receive(Time now) {
  const std::size_t most = was_empty_ ? 1 : kMessages;
  for (std::size_t i = 0; i < most; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof names_[i];
    messages_[i].msg_hdr.msg_controllen = sizeof controls_[i].bytes;
  }
  UdpSocket::Attempts attempts;
  for (;;) {
    const int count = ::recvmmsg(socket_.fd(), messages_.data(), static_cast<unsigned>(most),
                                 MSG_DONTWAIT, nullptr);
    if (count >= 0) return count;
    const int error = errno;
    if (error == EAGAIN) return 0;
    if (socket_.is_of_earlier(error, attempts, now)) continue;
    socket_.count_failed(error, now);
    return 0;
  }
}

// A raw socket of IPv4 gets the IP header, too.
Bytes UdpReceiver::data_of(std::size_t message) const {
  const Bytes all(buffers_.at(message),
                  std::min<std::size_t>(messages_[message].msg_len, kBufferSize));
  if (socket_.has_ports() || socket_.family() != AF_INET || all.empty()) return all;
  const std::size_t head =
      (std::to_integer<std::size_t>(all.front()) & 0xf) * sizeof(std::uint32_t);
  return all.subspan(std::min(head, all.size()));
}

unsigned UdpReceiver::take(std::size_t message, Engine& engine, Tap* tap, Time now) {
  const Bytes all = data_of(message);
  const std::size_t segment = segment_of(messages_[message].msg_hdr);
  const std::size_t length = segment == 0 ? std::max<std::size_t>(all.size(), 1) : segment;
  const msghdr& header = messages_[message].msg_hdr;
  const auto* const from =
      source_.heard(names_[message], header.msg_namelen, socket_.came_to(header), now);
  if (from != nullptr) {
    ways_.heard(from->name, length, now);
    socket_.count_heard(from->address, now);
  }
  unsigned datagrams = 0;
  std::size_t at = 0;
  do {
    const std::size_t size = std::min(length, all.size() - at);
    ++datagrams;
    if (from != nullptr) {
      if (count_ == kFrames) deliver(engine, now);
      const Bytes datagram = all.subspan(at, size);
      if (tap != nullptr)
        view_.show(*tap, {from->name, from->address}, {own_, socket_.address(from->own)}, datagram,
                   {}, PacketView::Way::kReceived);
      add(datagram, from->name);
    }
    at += size;
  } while (at < all.size());
  if (from == nullptr) counters_.no_station += datagrams;
  counters_.datagrams += datagrams;
  if (datagrams > 1) counters_.joined += datagrams;
  return datagrams;
}

// protocol: 13.1
void UdpReceiver::add(Bytes datagram, const MacAddr& from) {
  STP_ASSERT(count_ < kFrames, "there is a head for each frame");
  std::byte* const head = heads_.at(count_);
  std::byte* const body = wire::wrap_inline(own_, from, std::nullopt, false, 0, head);
  const Bytes first = datagram.first(std::min(datagram.size(), wire::kHeaderSize));
  std::memcpy(body, first.data(), first.size());
  LoopedFrame& frame = frames_[count_];
  frame.head = {head, wire::kEthernetSize + first.size()};
  frame.attached = datagram.subspan(first.size());
  if (seat_ == nullptr || !hand_over(frame)) ++count_;
}

// True: it belongs to another shard.
bool UdpReceiver::hand_over(const LoopedFrame& frame) {
  const unsigned owner = seat_->owner_of(frame.head);
  if (owner == seat_->shard()) return false;
  if (steered_ && Shards::port_of(frame.head) != 0) ++counters_.wrong_queue;
  seat_->give(owner, frame.head, frame.attached, false);
  return true;
}

void UdpReceiver::deliver(Engine& engine, Time now) {
  if (count_ > 0) engine.receive_apart(std::span(frames_).first(count_), now);
  count_ = 0;
}

}  // namespace stp::port
