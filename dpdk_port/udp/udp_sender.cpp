// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_sender.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>

#include "stp/base/assert.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

// The payload of a frame in its head, without the encapsulation and without the padding that
// Ethernet needs.
// protocol: 13.3
MutableBytes payload_of(const TxFrame& frame) {
  MutableBytes payload(frame.head, frame.head_length);
  STP_ASSERT(payload.size() >= wire::kEthernetSize + wire::kHeaderSize,
             "a Node's frame has a whole header");
  const std::uint16_t type = wire::load16(frame.head + wire::kEthernetSize - 2);
  payload = payload.subspan(wire::kEthernetSize);
  if (type <= wire::kMax8023Length) {
    const std::size_t stated = std::min<std::size_t>(type, payload.size());
    return payload.first(stated).subspan(wire::kSnapSize);
  }
  const auto op = static_cast<wire::Op>(wire::load16(payload.data()) >> wire::kOpShift);
  const bool has_option = payload.size() >= wire::kHeaderSize + wire::kOptionSize;
  return op == wire::Op::kData || has_option ? payload : payload.first(wire::kHeaderSize);
}

// The kernel has lost a datagram: the queue of an interface is full, or its table of neighbors, or
// its memory. Another station's may leave, so nothing waits.
bool is_lost(int error) {
  return error == ENOBUFS || error == ENOMEM;
}

// What concerns the way to a station, whatever is sent there.
bool is_about_way(int error) {
  return error == EPERM || error == EACCES || error == ENETUNREACH || error == EHOSTUNREACH ||
         error == ENETDOWN;
}

std::uint16_t port_of(const iovec& head) {
  return wire::load16(static_cast<const std::byte*>(head.iov_base) + wire::at::kDPort);
}

wire::Op op_of(const iovec& head) {
  const auto flags = wire::load16(static_cast<const std::byte*>(head.iov_base));
  return static_cast<wire::Op>(flags >> wire::kOpShift);
}

// Whether the datagram is DATA: of these only those of one Transfer or region have an order.
bool is_data(const iovec& head) {
  return op_of(head) == wire::Op::kData;
}

// Whether what is as long as it is to find out what the way carries. Several in a call are one
// packet as far as the next NIC: a router of this machine that the longest of them is too long for
// drops all.
// protocol: 13.20
bool finds_way(const iovec& head) {
  return UdpWays::begins({static_cast<const std::byte*>(head.iov_base), head.iov_len});
}

// The Transfers and regions of DATA that others overtake. A few: looking for one costs little.
class Overtaken {
 public:
  // Whether that one may not overtake them.
  [[nodiscard]] bool holds_back(const iovec& head) const {
    const auto all = std::span(names_).first(count_);
    return count_ != 0 && (!is_data(head) || std::ranges::find(all, name_of(head)) != all.end());
  }
  // False: nothing may overtake that one.
  bool add(const iovec& head) {
    if (!is_data(head)) return false;
    const auto name = name_of(head);
    const auto all = std::span(names_).first(count_);
    if (std::ranges::find(all, name) != all.end()) return true;
    if (count_ == names_.size()) return false;
    names_[count_++] = name;
    return true;
  }

 private:
  static std::uint64_t name_of(const iovec& head) {
    const auto* const at = static_cast<const std::byte*>(head.iov_base);
    return std::uint64_t{port_of(head)} << 32 | wire::load32(at + wire::at::kDId);
  }

  std::array<std::uint64_t, 4> names_{};
  std::size_t count_ = 0;
};

// What a kernel says that does not segment for this device.
bool is_about_segments(int error) {
  return error == EIO || error == EINVAL || error == ENOPROTOOPT || error == EOPNOTSUPP;
}

}  // namespace

UdpSender::UdpSender(UdpSocket& socket, FavoredPeer& favored, Peers& peers, UdpWays& ways,
                     Loopback& loopback, const MacAddr& own, std::size_t frame_room, Seat* seat)
    : socket_(socket),
      favored_(favored),
      peers_(peers),
      goal_(peers, socket.family()),
      ways_(ways),
      loopback_(loopback),
      own_(own),
      seat_(seat),
      buffers_(kBurstSize, frame_room) {
  for (std::size_t i = 0; i < kBurstSize; ++i) frames_[i].head = buffers_.at(i);
  waiting_.reserve(kBurstSize);
  sorted_.reserve(kBurstSize);
  tokens_.reserve(kBurstSize);
}

unsigned UdpSender::run(Engine& engine, Tap* tap, Time now) {
  const std::size_t waited = waiting_.size() - next_;
  full_bytes_ = 0;
  flush(engine, now);
  auto moved = static_cast<unsigned>(waited - (waiting_.size() - next_));
  const std::uint64_t looped = loopback_.total();
  for (std::size_t burst = 0; !is_waiting(); ++burst) {
    if (burst >= kBursts &&
        (full_bytes_ < burst * kFull || full_bytes_ >= kTurnBytes || loopback_.total() != looped))
      break;
    if (seat_ != nullptr && !seat_->may_send(now, kBurstSize)) break;
    const unsigned taken = take(engine, tap, now);
    if (taken == 0) break;
    moved += taken;
    flush(engine, now);
    if (seat_ != nullptr) seat_->publish();
  }
  return moved;
}

unsigned UdpSender::take(Engine& engine, Tap* tap, Time now) {
  STP_ASSERT(!is_waiting(), "frames are taken where none waits: their heads are in the same place");
  waiting_.clear();
  next_ = alike_ = 0;
  // What is taken at once fills calls. What was left over would need a call of its own.
  const auto most = kBurstSize - kBurstSize % fills_;
  const std::size_t count = engine.transmit(std::span(frames_).first(most), now);
  STP_ASSERT(count <= frames_.size(), "no more frames are taken than were offered a head");
  for (const TxFrame& frame : std::span(frames_).first(count)) {
    const Bytes head(frame.head, frame.head_length);
    const MacAddr to = destination(head);
    const MutableBytes payload = payload_of(frame);
    if (tap != nullptr) show(*tap, to, payload, frame.attached, now);
    if (to == own_) {
      loop(frame);
      continue;
    }
    // One field after the other: to copy what has just been written is slow.
    Datagram& each = waiting_.emplace_back();
    each.to = to;
    each.connected = !frame.for_stranger;
    each.presence = frame.presence;
    each.may_be_marked = frame.may_be_marked;
    each.pieces[0].iov_base = payload.data();
    each.pieces[0].iov_len = payload.size();
    each.pieces[1].iov_base = const_cast<std::byte*>(frame.attached.data());
    each.pieces[1].iov_len = frame.attached.size();
    each.end = payload.data() + payload.size();
    each.token.vc = frame.token.vc;
    each.token.region = frame.token.region;
    if (waiting_.size() == alike_ + 1 && each.is_like(waiting_.front())) ++alike_;
  }
  if (socket_.segments()) bring_together();
  return static_cast<unsigned>(count);
}

// What leaves in one call has one length. So a long put and the short message behind it would need
// two, again and again: those of one length follow each other, as far as no order is lost.
void UdpSender::bring_together() {
  const auto differ = [](const Datagram& a, const Datagram& b) {
    return a.size() != b.size() || a.may_be_marked != b.may_be_marked;
  };
  if (alike_ == waiting_.size() || std::ranges::adjacent_find(waiting_, differ) == waiting_.end())
    return;
  alike_ = 0;
  put_requests_last();
  sorted_.clear();
  std::bitset<kBurstSize> sorted;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (sorted[i]) continue;
    const Datagram& first = waiting_[i];
    sorted_.push_back(first);
    Overtaken overtaken;
    for (std::size_t j = i + 1; j < waiting_.size(); ++j) {
      const Datagram& next = waiting_[j];
      if (sorted[j]) continue;
      const bool is_like_it =
          next.goes_with(first) && next.size() == first.size() &&
          (seat_ == nullptr || port_of(next.pieces[0]) == port_of(first.pieces[0]));
      if (is_like_it && !overtaken.holds_back(next.pieces[0])) {
        sorted_.push_back(next);
        sorted.set(j);
      } else if (!overtaken.add(next.pieces[0])) {
        break;
      }
    }
  }
  waiting_.swap(sorted_);
}

// An RTS asks for a Transfer of its own, so any DATA that leaves with it may be first. Between DATA
// it would end one call early, and be the only one of another. So the last one is the end of the
// last call, and each one before it that of the call before.
void UdpSender::put_requests_last() {
  const auto asks = [](const Datagram& each) {
    return op_of(each.pieces[0]) == wire::Op::kRequestToSend;
  };
  const auto is_either = [&](const Datagram& each) {
    return is_data(each.pieces[0]) || asks(each);
  };
  const auto requests = std::ranges::count_if(waiting_, asks);
  if (requests == 0 || requests > kFewRequests || !std::ranges::all_of(waiting_, is_either)) return;
  sorted_.clear();
  std::ranges::remove_copy_if(waiting_, std::back_inserter(sorted_), asks);
  for (std::size_t i = waiting_.size(), ahead = sorted_.size(); i-- > 0;) {
    if (!asks(waiting_[i])) continue;
    sorted_.insert(sorted_.begin() + static_cast<std::ptrdiff_t>(ahead), waiting_[i]);
    ahead = ahead == 0 ? 0 : (ahead - 1) / fills_ * fills_;
  }
  waiting_.swap(sorted_);
}

// For a user of this host.
void UdpSender::loop(const TxFrame& frame) {
  const Bytes head(frame.head, frame.head_length);
  const unsigned owner = seat_ == nullptr ? 0 : seat_->owner_of(head);
  if (seat_ == nullptr || owner == seat_->shard()) return loopback_.push(frame);
  seat_->give(owner, head, frame.attached, true);
  if (frame.token.region != kNoneId) tokens_.push_back(frame.token);
}

// Not what no station gets.
void UdpSender::show(Tap& tap, const MacAddr& to, Bytes payload, Bytes attached, Time now) {
  const auto route = to == own_ ? Peers::Route{socket_.address()} : peers_.route_to(to, false, now);
  if (route)
    view_.show(tap, {own_, socket_.address(route->from)}, {to, route->to}, payload, attached,
               PacketView::Way::kSent);
}

void UdpSender::flush(Engine& engine, Time now) {
  while (is_waiting()) {
    const std::span run(waiting_.data() + next_, next_run());
    const std::size_t settled = send_run(run, now);
    STP_ASSERT(settled <= run.size(), "no more leave than were to be sent");
    for (const Datagram& each : run.first(settled))
      if (each.token.region != kNoneId) tokens_.push_back(each.token);
    next_ += settled;
    if (settled == 0) break;
    if (fills_a_call(run)) full_bytes_ += settled * run.front().size();
  }
  // The kernel has copied the memory.
  if (!tokens_.empty()) engine.transmitted(tokens_);
  tokens_.clear();
}

// How many datagrams from the first waiting one on can leave in one call: they have one length, but
// the last may be shorter. A peer that has shards gets those for one Port together, because its
// kernel looks at the first one only. Whoever has shards expects that of its peers, too.
std::size_t UdpSender::next_run() {
  const Datagram& first = waiting_[next_];
  const std::size_t segment = first.size();
  // Those that are known to be alike need no look.
  std::size_t count = 1;
  if (seat_ == nullptr && next_ < alike_)
    count = std::clamp<std::size_t>(kLongestDatagram / segment, 1, alike_ - next_);
  std::size_t bytes = count * segment;
  while (next_ + count < waiting_.size()) {
    const Datagram& each = waiting_[next_ + count];
    const std::size_t size = each.size();
    if (!each.goes_with(first) || size > segment) break;
    if (size < segment && finds_way(first.pieces[0])) break;
    if (bytes + size > kLongestDatagram) {
      fills_ = count;
      break;
    }
    if (seat_ != nullptr && port_of(each.pieces[0]) != port_of(first.pieces[0])) break;
    bytes += size;
    ++count;
    if (size < segment) break;
  }
  return count;
}

void UdpSender::choose_socket(std::span<const Datagram> run) {
  Presence presence = run.front().presence;
  if (presence != Presence::kProven)
    for (const Datagram& each : run) presence = std::min(presence, each.presence);
  by_ = presence == Presence::kProven || !says_own() ? &socket_ : &socket_.by(presence);
  leaves_ = &departures_[by_ == &socket_ ? 0 : static_cast<std::size_t>(presence)];
}

// A connected socket at all addresses has one for what does not say which it is from.
bool UdpSender::says_own() {
  return !socket_.is_any() || socket_.send_from(to_->own, to_->address, control_) != 0;
}

// Returns how many are done with, sent or not; 0: the socket has no room.
std::size_t UdpSender::send_run(std::span<Datagram> run, Time now) {
  const bool connected = std::ranges::any_of(run, &Datagram::connected);
  to_ = goal_.find(run.front().to, connected, now);
  if (to_ == nullptr) {
    counters_.unknown += run.size();
    return run.size();
  }
  choose_socket(run);
  const std::size_t settled =
      is_crowded(run, now) ? send_crowded(run, now) : send_to(to_->address, run, now);
  if (settled > 0) {
    const Datagram& first = run.front();
    if (!UdpWays::begins(first.head())) ways_.sent(first.to, first.size(), now);
    if (asks_for_long(run.first(settled))) ways_.asked(first.to, now);
    full_since_ = kNever;
    return settled;
  }
  if (by_ != &socket_) {  // nobody waits for who may not be there
    counters_.doubted += run.size();
    return run.size();
  }
  counters_.kept += run.size();
  if (full_since_ == kNever) full_since_ = now;
  if (now - full_since_ < kPatience) return 0;
  counters_.dropped += run.size();
  return run.size();
}

// Of a run: all but the last one are as long as the first, and what asks is short.
bool UdpSender::asks_for_long(std::span<const Datagram> run) {
  constexpr std::size_t kLongest = wire::kHeaderSize + wire::kOptionSize;
  if (run.front().size() > kLongest) run = run.last(1);
  return std::ranges::any_of(
      run, [](const Datagram& each) { return UdpWays::asks_for_long(each.head()); });
}

bool UdpSender::is_crowded(std::span<const Datagram> run, Time now) {
  constexpr std::size_t kOverhead = 1'024;  // what the kernel counts of a datagram besides
  return leaves_->is_crowded(*by_, run.size() * (run.front().size() + kOverhead), now);
}

// The kernel may keep what is for that station, and much room is taken already. What the socket
// that hears everybody is told may get lost in what it hears.
[[gnu::noinline]] std::size_t UdpSender::send_crowded(std::span<Datagram> run, Time now) {
  const MacAddr& station = run.front().to;
  auto way = leaves_->way_to(station, now);
  UdpSocket* const asking = by_ == &socket_ ? socket_.asking() : by_;
  if (way == Departures::Way::kUnknown && asking != nullptr && says_own()) {
    const int error = ask(run.first(1), *asking, now);
    if (error == 0) return 1;
    if (error == EAGAIN && !leaves_->has_left(station, now)) {
      // Who sends a lot tries again more often than who may not be there.
      if (by_ == &socket_) leaves_->note(station, false, now);
      way = Departures::Way::kKept;
    }
  }
  if (way != Departures::Way::kKept) return send_to(to_->address, run, now);
  counters_.doubted += run.size();
  return run.size();
}

// Returns the error of the call; 0: it has been sent.
int UdpSender::ask(std::span<Datagram> first, UdpSocket& asking, Time now) {
  (void)asking.has_left(now);  // what was asked about earlier
  UdpSocket* const by = by_;
  by_ = &asking;
  asks_ = true;
  const int error = send_singly(first) == 1 ? 0 : errno;
  asks_ = false;
  by_ = by;
  if (error != 0) return error;
  leaves_->note(first.front().to, asking.has_left(now), now);
  ++counters_.calls;
  ++counters_.datagrams;
  socket_.count_sent(to_->address, first.front().size(), now);
  return 0;
}

std::size_t UdpSender::send_to(const InternetAddress& to, std::span<Datagram> run, Time now) {
  if (run.size() == 1 && send_lone(run.front(), now)) {
    ++counters_.calls;
    ++counters_.datagrams;
    socket_.count_sent(to, run.front().size(), now);
    favored_.sent(run.front().to, *to_, now);
    return 1;
  }
  UdpSocket::Attempts attempts;
  for (;;) {
    const int sent = run.size() > 1 && socket_.segments() ? send_joined(run) : send_singly(run);
    if (sent >= 0) {
      ++counters_.calls;
      counters_.datagrams += static_cast<std::size_t>(sent);
      socket_.count_sent(to, run.front().size(), now);
      if (run.size() == 1 && run.front().connected) favored_.sent(run.front().to, *to_, now);
      return static_cast<std::size_t>(sent);
    }
    const int error = errno;
    if (!by_->is_of_earlier(error, attempts, now)) return settle(error, to, run, now);
  }
}

// To the favored station. False: by the link's socket, which finds out what is wrong, if anything
// is. What routers may mark needs control data, and so gains nothing.
bool UdpSender::send_lone(const Datagram& lone, Time now) {
  if (lone.may_be_marked) return false;
  UdpSocket* const socket = favored_.socket_to(lone.to);
  if (socket == nullptr) return false;
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(lone.pieces);
  message.msg_iovlen = 2;
  const iovec& head = lone.pieces[0];
  const ssize_t sent = lone.pieces[1].iov_len == 0
                           ? ::send(socket->fd(), head.iov_base, head.iov_len, kFlags)
                           : ::sendmsg(socket->fd(), &message, kFlags);
  if (sent < 0) {
    failed_alone(*socket, errno, now);
    return false;
  }
  ++counters_.favored;
  favored_.answer().sent();
  return true;
}

bool UdpSender::fills_a_call(std::span<const Datagram> run) {
  return run.size() > 1 && run.size() * run.front().size() >= kFull;
}

void UdpSender::failed_alone(UdpSocket& socket, int error, Time now) {
  if (error == EAGAIN || is_lost(error) || error == EFAULT) return;
  // Nobody reads them later.
  UdpSocket::Attempts attempts;
  (void)socket.is_of_earlier(error, attempts, now);
  if (error != EMSGSIZE) favored_.failed();
}

// The kernel did not send.
std::size_t UdpSender::settle(int error, const InternetAddress& to, std::span<Datagram> run,
                              Time now) {
  if (error == EAGAIN) return 0;
  if (is_about_way(error) || is_lost(error)) return give_up(error, to, run, now);
  const auto first = run.first(1);
  const bool cannot_read = error == EFAULT && first[0].pieces[1].iov_len > 0;
  if (cannot_read) {
    // A page of the user is missing: this thread's own access brings one (libst/host).
    iovec& memory = first[0].pieces[1];
    std::memcpy(first[0].end, memory.iov_base, memory.iov_len);
    memory.iov_base = first[0].end;
  }
  if (cannot_read || run.size() > 1) {
    // Alone it shows whether the fault is that of several in one call.
    UdpSocket::Attempts attempts;
    while (send_singly(first) != 1) {
      const int alone = errno;
      if (by_->is_of_earlier(alone, attempts, now)) continue;
      return alone == EAGAIN ? 0 : give_up(alone, to, run, now);
    }
    if (is_about_segments(error)) socket_.stop_segmenting(error, now);
    ++counters_.calls;
    ++counters_.datagrams;
    return 1;
  }
  return give_up(error, to, run, now);
}

// They are dropped: the kernel does not send them, now or later.
std::size_t UdpSender::give_up(int error, const InternetAddress& to, std::span<Datagram> run,
                               Time now) {
  if (error == EMSGSIZE) {
    by_->count_too_long(run.front().size(), now);
    return 1;
  }
  if (is_lost(error)) {
    counters_.dropped += run.size();
    socket_.tell_lost(to, error, now);
    return run.size();
  }
  socket_.count_refused(run.size(), to, error, now);
  return run.size();
}

// Lists what a call sends. Returns the number of pieces.
std::size_t UdpSender::list_pieces(std::span<const Datagram> run) {
  if (run.front().size() <= kGathered) {
    pieces_[0] = {gathered_.data(), gather(run)};
    return 1;
  }
  std::size_t count = 0;
  for (const Datagram& each : run)
    for (const iovec& piece : each.pieces)
      if (piece.iov_len != 0) pieces_[count++] = piece;
  return count;
}

// Copies what a call sends behind each other. Returns how long it is.
std::size_t UdpSender::gather(std::span<const Datagram> run) {
  std::byte* to = gathered_.data();
  for (const Datagram& each : run) {
    const auto& [head, rest] = each.pieces;
    if (head.iov_len == wire::kHeaderSize) [[likely]]
      std::memcpy(to, head.iov_base, wire::kHeaderSize);  // without a call
    else
      std::memcpy(to, head.iov_base, head.iov_len);
    to += head.iov_len;
    if (rest.iov_len != 0) std::memcpy(to, rest.iov_base, rest.iov_len);
    to += rest.iov_len;
  }
  return static_cast<std::size_t>(to - gathered_.data());
}

// What the kernel is told besides the data and the address. Returns how long it is.
std::size_t UdpSender::begin_control(const Datagram& first) {
  std::size_t used = socket_.send_from(to_->own, to_->address, control_);
  if (first.may_be_marked) {
    used = CMSG_ALIGN(used);
    used += UdpSocket::let_mark(to_->address, std::span(control_).subspan(used));
  }
  if (asks_) {
    used = CMSG_ALIGN(used);
    used += UdpSocket::ask_departure(std::span(control_).subspan(used));
  }
  return used;
}

// Returns the number that was sent, or -1: see errno.
int UdpSender::send_joined(std::span<Datagram> run) {
  const std::size_t before = CMSG_ALIGN(begin_control(run.front()));
  msghdr message{};
  message.msg_name = &to_->name;
  message.msg_namelen = to_->length;
  message.msg_iov = pieces_.data();
  message.msg_iovlen = list_pieces(run);
  message.msg_control = control_.data();
  message.msg_controllen = before + CMSG_SPACE(sizeof(std::uint16_t));
  auto* const segment = reinterpret_cast<cmsghdr*>(&control_[before]);
  segment->cmsg_level = IPPROTO_UDP;
  segment->cmsg_type = UDP_SEGMENT;
  segment->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto size = static_cast<std::uint16_t>(run.front().size());
  std::memcpy(CMSG_DATA(segment), &size, sizeof size);
  const auto sent = ::sendmsg(by_->fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? -1 : static_cast<int>(run.size());
}

int UdpSender::send_singly(std::span<Datagram> run) {
  const std::size_t control = begin_control(run.front());
  for (std::size_t i = 0; i < run.size(); ++i) {
    msghdr& message = messages_[i].msg_hdr;
    message = {};
    message.msg_name = &to_->name;
    message.msg_namelen = to_->length;
    message.msg_iov = run[i].pieces;
    message.msg_iovlen = run[i].pieces[1].iov_len > 0 ? 2 : 1;
    if (control == 0) continue;
    message.msg_control = control_.data();
    message.msg_controllen = control;
  }
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  // This takes less time than the call for several.
  if (run.size() == 1) return ::sendmsg(by_->fd(), &messages_[0].msg_hdr, kFlags) < 0 ? -1 : 1;
  return ::sendmmsg(by_->fd(), messages_.data(), static_cast<unsigned>(run.size()), kFlags);
}

}  // namespace stp::port
