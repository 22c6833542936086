// SPDX-License-Identifier: BSD-3-Clause
// The link of UDP sockets, one for each of its shards: any IP network, no driver, no privileges. Or
// that of a raw socket of IP protocol 118.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/link_port.h"
#include "dpdk_port/udp/favored_peer.h"
#include "dpdk_port/udp/kept_messages.h"
#include "dpdk_port/udp/packet_view.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/routes.h"
#include "dpdk_port/udp/udp_sender.h"
#include "dpdk_port/udp/udp_socket.h"
#include "dpdk_port/udp/udp_troubles.h"
#include "dpdk_port/udp/udp_ways.h"
#include "stp/base/assert.h"
#include "stp/base/mutex.h"
#include "stp/wire/ethernet.h"

namespace stp::port {
namespace {

// ---- receiving

// Receives datagrams: several in one call, each perhaps of many that the kernel has joined. It
// copies a Schedule Header behind the Ethernet header that the Node expects; everything else stays
// where the kernel has written it. What belongs to another shard is handed to it: the kernel looks
// at the first of several datagrams that it has joined, and the others may be for anybody.
class UdpReceiver {
 public:
  // `seat`: nullptr, or that of one of several shards; `steered`: the kernel picks their sockets.
  UdpReceiver(UdpSocket& socket, FavoredPeer& favored, Peers& peers, UdpWays& ways,
              const MacAddr& own, Seat* seat, bool steered);

  // Returns the number of datagrams. `is_idle`: the turn has moved nothing so far.
  unsigned run(Engine& engine, Tap* tap, Time now, bool is_idle);
  // The next call leaves out no socket.
  void ask_all() { left_out_ = kAskAll; }
  // Its sockets are readable only if something is new.
  void prepare_to_sleep(Time now) {
    ask_all();
    kept_.let_go(now);
  }

  [[nodiscard]] UdpReceiveCounters counters() const {
    UdpReceiveCounters all = counters_;
    all.kept = kept_.total();
    return all;
  }

 private:
  // A call's worth: what it copies is still in the nearest cache when the Node copies it on.
  static constexpr std::size_t kMessages = 4, kBufferSize = 65'536;
  static constexpr std::size_t kFrames = 64;
  // While the favored station's socket had something within kRecent calls, and the link's was
  // empty, the link's is left out so many times in a row: more often where it has had nothing for
  // kQuiet calls, and where the favored one has just had something, which somebody may wait for.
  // But not for longer than that time: turns that send much are long.
  static constexpr unsigned kLeftOut = 3, kLeftOutOfQuiet = 31, kLeftOutOfBusy = 8;
  static constexpr Time kLongestLeftOut = 100 * kMicrosecond;
  static constexpr unsigned kRecent = 64, kQuiet = 64, kAskAll = 1'000;

  // A socket, and the address of this host that its datagrams come to, unless they tell.
  struct Source {
    UdpSocket& socket;
    const OwnAddress* own = nullptr;
    bool was_empty = false;  // at the last call
    bool is_plain = false;   // see FavoredPeer
    KeptMessages* kept = nullptr;
    std::size_t longest = 0;  // message that has come there, in bytes
  };
  unsigned run(Source& from, Engine& engine, Tap* tap, Time now);
  unsigned run_favored(Engine& engine, Tap* tap, Time now, bool is_idle);
  bool leaves_link_out(unsigned moved, Time now);
  int receive(const Source& from, Time now);
  int ask(const Source& from, std::size_t most);
  int ask_for_plain(int fd);
  [[nodiscard]] Bytes data_of(std::size_t message) const;
  unsigned take(const Source& source, std::size_t message, Engine& engine, Tap* tap, Time now);
  void add(Bytes datagram, const MacAddr& from, bool marked);
  bool hand_over(const LoopedFrame& frame);
  void deliver(Engine& engine, Time now);

  UdpSocket& socket_;
  FavoredPeer& favored_;
  KeptMessages kept_{socket_};
  Source link_{.socket = socket_, .kept = &kept_};
  unsigned left_out_ = kAskAll;
  unsigned empty_calls_ = 0, empty_link_calls_ = 0;  // in a row
  Time asked_ = 0;                                   // the link's socket
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
    std::array<std::byte, 64 + UdpSocket::kOwnControl + UdpSocket::kMarkControl> bytes;
  };
  std::array<Control, kMessages> controls_{};
  std::array<mmsghdr, kMessages> messages_{};
  std::array<LoopedFrame, kFrames> frames_;
  std::size_t count_ = 0;  // frames that the Node has not seen
  PacketView view_{socket_.has_ports()};
  UdpReceiveCounters counters_;
};

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

UdpReceiver::UdpReceiver(UdpSocket& socket, FavoredPeer& favored, Peers& peers, UdpWays& ways,
                         const MacAddr& own, Seat* seat, bool steered)
    : socket_(socket),
      favored_(favored),
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

unsigned UdpReceiver::run(Engine& engine, Tap* tap, Time now, bool is_idle) {
  if (favored_.socket() == nullptr && favored_.former() == nullptr)
    return run(link_, engine, tap, now);
  if (!favored_.is_settled(now)) {
    const unsigned earlier = run(link_, engine, tap, now);
    return earlier + run_favored(engine, tap, now, is_idle);
  }
  const unsigned moved = run_favored(engine, tap, now, is_idle);
  if (leaves_link_out(moved, now)) return moved;
  left_out_ = 0;
  asked_ = now;
  const unsigned others = run(link_, engine, tap, now);
  empty_link_calls_ = others == 0 ? empty_link_calls_ + 1 : 0;
  return moved + others;
}

// `moved`: of the favored station's socket.
bool UdpReceiver::leaves_link_out(unsigned moved, Time now) {
  empty_calls_ = moved == 0 ? empty_calls_ + 1 : 0;
  const unsigned most =
      (empty_link_calls_ < kQuiet ? kLeftOut : kLeftOutOfQuiet) + (moved == 0 ? 0 : kLeftOutOfBusy);
  return link_.was_empty && empty_calls_ < kRecent && now - asked_ < kLongestLeftOut &&
         left_out_++ < most;
}

unsigned UdpReceiver::run_favored(Engine& engine, Tap* tap, Time now, bool is_idle) {
  unsigned moved = 0;
  if (UdpSocket* const former = favored_.former()) {
    Source from{*former, &favored_.own()};
    moved = run(from, engine, tap, now);
    if (moved == 0) favored_.let_go();
  }
  UdpSocket* const socket = favored_.socket();
  if (socket == nullptr) return moved;
  favored_.tell_marks();
  socket->hear_again(now);
  Source from{*socket, &favored_.own(), favored_.was_empty(), favored_.is_plain(now)};
  bool continues = false;
  unsigned taken = 0;
  for (unsigned left = is_idle ? favored_.answer().asks() : 1; left > 0 && taken == 0; --left) {
    continues = !from.was_empty;
    taken = run(from, engine, tap, now);
  }
  favored_.answer().turn(taken != 0);
  favored_.note_empty(from.was_empty);
  favored_.came(taken, from.longest, continues);
  return moved + taken;
}

unsigned UdpReceiver::run(Source& from, Engine& engine, Tap* tap, Time now) {
  unsigned moved = 0;
  while (moved < kBurst * kTurnBursts) {
    const int count = receive(from, now);
    from.was_empty = count <= 0;
    if (from.was_empty) break;
    for (int i = 0; i < count; ++i) {
      moved += take(from, static_cast<std::size_t>(i), engine, tap, now);
      from.longest =
          std::max<std::size_t>(from.longest, messages_[static_cast<std::size_t>(i)].msg_len);
    }
    deliver(engine, now);
    if (from.kept != nullptr) from.kept->settle(now);
    if (seat_ != nullptr) seat_->publish();
    if (count < static_cast<int>(kMessages)) break;
  }
  if (moved == 0 && from.kept != nullptr) from.kept->settle(now);
  return moved;
}

// A socket that was empty is asked for one message, without a second look at what is left: so a
// lone datagram, which may be what somebody waits for, is here sooner.
int UdpReceiver::receive(const Source& from, Time now) {
  const std::size_t most = from.was_empty ? 1 : kMessages;
  for (std::size_t i = 0; i < most; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof names_[i];
    messages_[i].msg_hdr.msg_controllen = sizeof controls_[i].bytes;
  }
  UdpSocket::Attempts attempts;
  for (;;) {
    const int count = ask(from, most);
    if (count >= 0) return count;
    const int error = errno;
    if (error == EAGAIN) return 0;
    if (from.socket.is_of_earlier(error, attempts, now)) continue;
    // Receiving fails so only in place of an earlier datagram, however many reports there are: a
    // connected socket is told of them also while it does not listen.
    if (!UdpSocket::may_be_reported(error))
      from.socket.count_failed(error, now);
    else if (from.own != nullptr)
      favored_.failed();
    return 0;
  }
}

// Returns the number of messages, or -1: see errno. For one of them recvmsg() takes less time.
int UdpReceiver::ask(const Source& from, std::size_t most) {
  const int fd = from.socket.fd();
  const int flags =
      from.kept != nullptr && from.kept->are_kept() ? MSG_DONTWAIT | MSG_PEEK : MSG_DONTWAIT;
  if (most > 1)
    return ::recvmmsg(fd, messages_.data(), static_cast<unsigned>(most), flags, nullptr);
  if (from.is_plain) return ask_for_plain(fd);
  const auto size = ::recvmsg(fd, &messages_[0].msg_hdr, flags);
  if (size < 0) return -1;
  messages_[0].msg_len = static_cast<unsigned>(size);
  return 1;
}

// The call that takes the least time.
int UdpReceiver::ask_for_plain(int fd) {
  const auto size = ::recv(fd, buffers_.at(0), kBufferSize, MSG_DONTWAIT);
  if (size < 0) return -1;
  const FavoredPeer::SocketName& peer = favored_.peer();
  // All of a name that may be long, without a call.
  std::memcpy(&names_[0], &peer.name, sizeof(sockaddr_in6));
  messages_[0].msg_hdr.msg_namelen = peer.length;
  messages_[0].msg_hdr.msg_controllen = 0;
  messages_[0].msg_len = static_cast<unsigned>(size);
  return 1;
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

unsigned UdpReceiver::take(const Source& source, std::size_t message, Engine& engine, Tap* tap,
                           Time now) {
  const Bytes all = data_of(message);
  const std::size_t segment = segment_of(messages_[message].msg_hdr);
  const std::size_t length = segment == 0 ? std::max<std::size_t>(all.size(), 1) : segment;
  const msghdr& header = messages_[message].msg_hdr;
  const auto* const from =
      source_.heard(names_[message], header.msg_namelen,
                    source.own == nullptr ? socket_.came_to(header) : *source.own, now);
  if (from != nullptr) {
    ways_.heard(from->name, length, now, UdpWays::begins(all));
    socket_.count_heard(from->address, now, UdpWays::answers(all));
  }
  const bool marked = UdpSocket::is_marked(header);
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
      add(datagram, from->name, marked);
    }
    at += size;
  } while (at < all.size());
  if (from == nullptr) counters_.no_station += datagrams;
  if (source.kept != nullptr) {
    const bool from_here = from != nullptr && (from->address.is_loopback() ||
                                               from->address.ip == socket_.address(from->own).ip);
    source.kept->have_read(messages_[message].msg_len, datagrams >= FavoredPeer::kMany,
                           from_here ? KeptMessages::From::kThisHost : KeptMessages::From::kUnknown,
                           now);
  }
  counters_.datagrams += datagrams;
  if (datagrams > 1) {
    counters_.joined += datagrams;
    if (from != nullptr) favored_.came_joined(from->name, datagrams, length);
  }
  return datagrams;
}

// protocol: 13.1
void UdpReceiver::add(Bytes datagram, const MacAddr& from, bool marked) {
  STP_ASSERT(count_ < kFrames, "there is a head for each frame");
  std::byte* const head = heads_.at(count_);
  std::byte* const body = wire::wrap_inline(own_, from, std::nullopt, false, 0, head);
  const Bytes first = datagram.first(std::min(datagram.size(), wire::kHeaderSize));
  if (first.size() == wire::kHeaderSize) [[likely]]
    std::memcpy(body, first.data(), wire::kHeaderSize);
  else
    std::memcpy(body, first.data(), first.size());
  LoopedFrame& frame = frames_[count_];
  frame.head = {head, wire::kEthernetSize + first.size()};
  frame.attached = datagram.subspan(first.size());
  frame.marked = marked;
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

// ---- the link

// Whether the socket can have that address, or reach it.
bool carries(const UdpSocket& socket, const InternetAddress& address) {
  return address.ipv4() ? socket.family() == AF_INET || (socket.is_any() && socket.has_ports())
                        : socket.family() == AF_INET6;
}

// What all shards of a link have. Their sockets end with the last shard: the places of sockets that
// share a port change when one of them closes. The first shard looks after it.
class UdpLink {
 public:
  UdpLink(LinkConfig config, Random& random)
      : peers(random, config.kind == LinkKind::kIp ? std::uint16_t{0} : wire::kUdpPort),
        config_(std::move(config)),
        watch_(config_),
        index_(watch_.index()),
        absence_(watch_.absence()),
        megabits_(watch_.megabits()) {}

  void open(unsigned shards, OpenError& error) {
    sockets_ = UdpSocket::open(config_, shards, false, troubles, error);
    if (sockets_.empty()) return;
    const Lock lock(mutex_);
    own_ = sockets_.front()->address();
  }
  [[nodiscard]] UdpSocket& socket(unsigned shard) { return *sockets_[shard]; }
  [[nodiscard]] unsigned interface() const { return index_.load(std::memory_order_relaxed); }
  [[nodiscard]] Congestion congestion() const {
    return config_.congestion.value_or(Congestion::kAuto);
  }
  [[nodiscard]] const std::string& not_steered() const { return sockets_.front()->not_steered(); }

  void look(Time now, FavoredPeer& favored) {
    if (!watch_.look(now)) return;
    const std::string failure = follow_interface(favored);
    if (!failure.empty()) troubles.tell(UdpTroubles::About::kOther, failure, now);
    const Lock lock(mutex_);
    absence_ = watch_.absence();
    megabits_ = watch_.megabits();
    // Without any address it keeps the last one.
    if (const auto& own = watch_.own(); own && carries(*sockets_.front(), *own)) {
      own_.ip = own->ip;
      own_.scope = own->scope;
    }
    moves_.fetch_add(1, std::memory_order_release);
  }
  std::optional<Absence> absence() {
    const Lock lock(mutex_);
    return absence_;
  }
  // Its address, as others are told. The names of stations do not follow it: those of the address
  // that the sockets were opened with are without an address of this host (Peers).
  InternetAddress own() {
    const Lock lock(mutex_);
    return own_;
  }
  // Speed of the line; 0: not known.
  unsigned megabits() {
    const Lock lock(mutex_);
    return megabits_;
  }
  // How often one of these may have changed.
  [[nodiscard]] unsigned moves() const { return moves_.load(std::memory_order_acquire); }

  Peers peers;
  UdpTroubles troubles;

 private:
  std::string follow_interface(FavoredPeer& favored);

  const LinkConfig config_;
  AddressWatch watch_;
  std::atomic<unsigned> index_;  // of the interface that the sockets are bound to; 0: none
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  Mutex mutex_;
  std::optional<Absence> absence_ STP_GUARDED_BY(mutex_);
  InternetAddress own_ STP_GUARDED_BY(mutex_);
  unsigned megabits_ STP_GUARDED_BY(mutex_);
  std::atomic<unsigned> moves_{0};
};

// An interface that was made anew is another one for the sockets, even with the same name.
std::string UdpLink::follow_interface(FavoredPeer& favored) {
  if (watch_.absence() || watch_.index() == index_) return "";
  LinkConfig config = config_;
  config.port = sockets_.front()->address().port;
  OpenError error;
  favored.end();
  const auto anew =
      UdpSocket::open(config, static_cast<unsigned>(sockets_.size()), true, troubles, error);
  for (std::size_t i = 0; i < anew.size() && error.text.empty(); ++i)
    error.text = anew[i]->take_place_of(*sockets_[i]);
  favored.begin_again();
  if (!error.text.empty())
    return "the interface is there again, but the link cannot use it: " + error.text +
           "; restart this program";
  index_ = watch_.index();
  return "";
}

std::string driver_of(const UdpSocket& socket) {
  if (!socket.has_ports()) return "ip";
  const int failed = socket.not_segmented();
  return std::string("udp") + (socket.segments() ? "+segment" : "") +
         (socket.joins() ? "+gro" : "") +
         (failed == 0 ? "" : std::string(", one by one (") + std::strerror(failed) + ")");
}

// What all that the socket sends has: its address, unless it has all of the host's, and its port.
InternetAddress own_part(const UdpSocket& socket) {
  InternetAddress own = socket.address();
  if (socket.is_any()) own.ip = {};
  return own;
}

class UdpPort final : public LinkPort {
 public:
  UdpPort(PortInfo info, std::shared_ptr<UdpLink> link, const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing),
        link_(std::move(link)),
        socket_(link_->socket(info_.shard)),
        favored_(socket_, routes_, !seat_),
        receiver_(socket_, favored_, link_->peers, ways_, info_.mac, seat_ ? &*seat_ : nullptr,
                  link_->not_steered().empty()),
        sender_(socket_, favored_, link_->peers, ways_, loopback_, info_.mac, frame_room(info_.mtu),
                seat_ ? &*seat_ : nullptr) {
    // protocol: 13.9
    if (link_->congestion() != Congestion::kAuto) return;
    info_.ways = &routes_;
    routes_.open();
  }

  unsigned turn(Engine& engine, Time now) override;

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    return find_station(InternetAddress::of(address, 0), now, nullptr);
  }
  std::optional<MacAddr> find_station(const InternetAddress& address, Time now,
                                      bool* is_new) override;

  [[nodiscard]] std::vector<PortCounter> counters() const override;
  [[nodiscard]] LinkState state() const override {
    if (const auto absence = link_->absence()) return absence->state;
    return link_->troubles.are_about_length(seen_) ? LinkState::kMtu : LinkState::kUp;
  }
  [[nodiscard]] std::string trouble() const override {
    const auto absence = link_->absence();
    return absence ? absence->trouble : link_->troubles.text(seen_);
  }
  [[nodiscard]] bool is_reported_gone(const MacAddr& station) const override {
    const auto address = link_->peers.look_up(station);
    return address && link_->troubles.is_gone(*address, seen_);
  }
  [[nodiscard]] std::string trouble_of(const MacAddr& station) const override;
  [[nodiscard]] std::string name_of_station(const MacAddr& station) const override {
    const auto address = station == info_.mac ? std::optional(own_) : link_->peers.look_up(station);
    return address ? to_string(*address) : LinkPort::name_of_station(station);
  }
  [[nodiscard]] std::string steering() const override;
  [[nodiscard]] int wake_fd() const override { return favored_.wake_fd(); }
  bool prepare_to_sleep() override {
    receiver_.prepare_to_sleep(seen_);
    return !sender_.is_waiting() && favored_.prepare_to_sleep(seen_) &&
           LinkPort::prepare_to_sleep();
  }
  void woke_up() override {
    favored_.woke_up();
    LinkPort::woke_up();
  }

 private:
  void look_around(Time now);
  void follow_host();
  [[nodiscard]] std::string doubt_about(const MacAddr& station, const std::string& host) const;

  const std::shared_ptr<UdpLink> link_;
  UdpSocket& socket_;
  UdpWays ways_;
  Routes routes_{link_->peers, own_part(socket_), system_random(), &socket_};
  FavoredPeer favored_;
  UdpReceiver receiver_;
  UdpSender sender_;
  bool segments_ = socket_.segments();  // as info_ says
  InternetAddress own_ = link_->own();  // as info_ says, too
  unsigned moves_ = 0;                  // changes of the link's that it says
  Time seen_ = 0;                       // the time of the last turn
};

// Answers leave in the next turn, as on other links.
unsigned UdpPort::turn(Engine& engine, Time now) {
  // What waits to be sent goes first, unless this thread has been away.
  const bool was_here = now - seen_ < kMillisecond;
  seen_ = now;
  if (was_here)
    routes_.turn(now, info_.interface);
  else
    look_around(now);
  unsigned moved = loopback_.deliver(engine, now);
  if (seat_) moved += seat_->deliver(engine, now);
  if (now >= engine.next_deadline()) {
    // This thread may not have run for long: frames that arrived meanwhile end the silence.
    receiver_.ask_all();
    moved += receiver_.run(engine, tap_, now, false);
    engine.expire(now);
  }
  routes_.users_send();
  moved += sender_.run(engine, tap_, now);
  routes_.frames_come();
  if (was_here) look_around(now);
  if (segments_ != socket_.segments()) {
    segments_ = socket_.segments();
    info_.driver = driver_of(socket_);
  }
  return moved + receiver_.run(engine, tap_, now, moved == 0);
}

// At what changes without the link: once in each turn.
void UdpPort::look_around(Time now) {
  socket_.hear_again(now);
  if (info_.shard == Crossing::kOwner) link_->look(now, favored_);
  info_.interface = link_->interface();
  if (moves_ != link_->moves()) follow_host();
  routes_.turn(now, info_.interface);
  favored_.look(now);
}

void UdpPort::follow_host() {
  moves_ = link_->moves();
  own_ = link_->own();
  info_.address = own_.ipv4();
  info_.device = to_string(own_);
  info_.megabits = link_->megabits();
}

std::string UdpPort::trouble_of(const MacAddr& station) const {
  if (const auto absence = link_->absence()) return absence->trouble;
  const auto address = link_->peers.look_up(station);
  if (!address)
    return station == info_.mac ? ""
                                : "the link knows no address of " + to_string(station) +
                                      ": over IP a peer is named by its IP address";
  std::string text = link_->troubles.text_of(*address, seen_);
  return text.empty() ? doubt_about(station, host_of(*address)) : text;
}

// protocol: 13.6
std::string UdpPort::doubt_about(const MacAddr& station, const std::string& host) const {
  // Else each STU is in a datagram that arrives on any way, however much is asked for.
  const bool has_long_stus = (std::size_t{1} << info_.max_stu) > UdpWays::kEverywhere;
  std::size_t length = ways_.longest(station, seen_);
  std::string text = host + " answers, and ";
  if (length != 0) {
    text += "gets datagrams of up to " + std::to_string(length) +
            " bytes: if it is these that do not arrive";
  } else if (has_long_stus && ways_.owes(station, seen_)) {
    length = info_.mtu;
    text += "no long datagram of what it is asked for has come: if it has sent some";
  } else {
    return "";
  }
  // What ping sends has a header of its own, as long as that of UDP.
  return text + ", the way carries shorter packets than this link, which has mtu=" +
         std::to_string(info_.mtu + socket_.headers()) +
         ", and no router says so; see whether 'ping -M do -s " +
         std::to_string(length - (socket_.has_ports() ? 0 : kUdpHeader)) + " " + host +
         "' is answered, and if not, open the links of both hosts with mtu= of the way, or with "
         "mtu=1280, which most ways carry";
}

std::string UdpPort::steering() const {
  if (!seat_) return "";
  const auto sockets = std::to_string(seat_->crossing().count()) + " sockets at one UDP port";
  const std::string& why = link_->not_steered();
  return (why.empty() ? "the kernel picks the socket by D_Port: " + sockets
                      : "shards hand frames over: " + why) +
         "; each shard sends on its own";
}

std::optional<MacAddr> UdpPort::find_station(const InternetAddress& address, Time now,
                                             bool* is_new) {
  if (is_new != nullptr) *is_new = false;
  InternetAddress to = address;
  if (to.port == 0) to.port = info_.peer_udp_port;
  // The name of a host often stands for a loopback address of it.
  const bool by_loopback = to.is_loopback() && !own_.is_loopback() && to.port == own_.port;
  if (to == own_ || by_loopback) return info_.mac;
  return carries(socket_, to) ? link_->peers.know(to, now, socket_.used_for(to), is_new)
                              : std::nullopt;
}

std::vector<PortCounter> UdpPort::counters() const {
  std::vector<PortCounter> all{{"looped", loopback_.total()}};
  add(all, receiver_.counters());
  add(all, sender_.counters());
  add(all, socket_.errors());
  if (info_.shard == Crossing::kOwner)
    all.insert(all.end(), {{"udp_peers", link_->peers.known()},
                           {"udp_strangers", link_->peers.strangers()},
                           {"udp_displaced", link_->peers.displaced()}});
  if (seat_) all.push_back({"wrong_queue", receiver_.counters().wrong_queue});
  add_seat_counters(all);
  return all;
}

PortInfo describe(const LinkConfig& config, const UdpSocket& socket, const Peers& peers) {
  PortInfo info;
  info.link = config.text;
  info.device = to_string(socket.address());
  info.driver = driver_of(socket);
  info.mac = peers.name_of(socket.address());
  info.mtu = socket.longest();
  info.max_stu = max_stu_of(info.mtu);
  info.attaches = !config.copy;
  // The kernel counts what surrounds a datagram in its memory, too.
  info.receive_queue = (socket.receive_bytes() - socket.kept_bytes()) / (2 * info.mtu) + 1;
  info.address = socket.address().ipv4();
  info.internet = true;
  info.one_address = !socket.is_any();
  info.udp_port = socket.address().port;
  const bool named = config.port.value_or(0) != 0;
  info.peer_udp_port = named || !socket.has_ports() ? info.udp_port : wire::kUdpPort;
  info.ipv6 = socket.family() == AF_INET6;
  info.routed = config.congestion == Congestion::kOn;
  // protocol: 13.22
  info.marks = config.congestion != Congestion::kOff;
  info.sources = &peers;
  return info;
}

}  // namespace

LinkPorts open_udp_ports(const LinkConfig& config, unsigned shards, OpenError& error) {
  const auto link = std::make_shared<UdpLink>(config, system_random());
  link->open(shards, error);
  if (!error.text.empty()) return {};
  PortInfo info = describe(config, link->socket(0), link->peers);
  // A shard that hands a datagram over does not tell of its mark.
  info.marks = info.marks && (shards == 1 || link->not_steered().empty());
  info.interface = link->interface();
  info.megabits = link->megabits();
  const auto crossing =
      shards > 1 ? std::make_shared<Crossing>(shards, frame_room(info.mtu)) : nullptr;
  LinkPorts ports;
  for (info.shard = 0; info.shard < shards; ++info.shard)
    ports.push_back(std::make_unique<UdpPort>(info, link, crossing));
  return ports;
}

}  // namespace stp::port
