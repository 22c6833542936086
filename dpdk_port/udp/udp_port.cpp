// SPDX-License-Identifier: BSD-3-Clause
// The link of UDP sockets, one for each of its shards: any IP network, no driver, no privileges. Or
// that of a raw socket of IP protocol 118.
#include <atomic>
#include <mutex>

#include "dpdk_port/link/address_watch.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link_port.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_receiver.h"
#include "dpdk_port/udp/udp_sender.h"
#include "dpdk_port/udp/udp_socket.h"
#include "dpdk_port/udp/udp_troubles.h"
#include "dpdk_port/udp/udp_ways.h"

namespace stp::port {
namespace {

// What all shards of a link have. Their sockets end with the last shard: the places of sockets that
// share a port change when one of them closes. The first shard looks after it.
class UdpLink {
 public:
  UdpLink(LinkConfig config, Random& random)
      : peers(random, config.kind == LinkKind::kIp ? std::uint16_t{0} : wire::kUdpPort),
        config_(std::move(config)),
        watch_(config_),
        index_(watch_.index()),
        absence_(watch_.absence()) {}

  // "": it is open.
  std::string open(unsigned shards) {
    std::string error;
    sockets_ = UdpSocket::open(config_, shards, false, troubles, error);
    return error;
  }
  [[nodiscard]] UdpSocket& socket(unsigned shard) { return *sockets_[shard]; }
  [[nodiscard]] unsigned interface() const { return index_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& not_steered() const { return sockets_.front()->not_steered(); }

  void look(Time now) {
    if (!watch_.look(now)) return;
    const std::string failure = follow_interface();
    if (!failure.empty()) troubles.tell(UdpTroubles::About::kOther, failure, now);
    const std::lock_guard lock(mutex_);
    absence_ = watch_.absence();
  }
  std::optional<Absence> absence() {
    const std::lock_guard lock(mutex_);
    return absence_;
  }

  Peers peers;
  UdpTroubles troubles;

 private:
  std::string follow_interface();

  const LinkConfig config_;
  AddressWatch watch_;
  std::atomic<unsigned> index_;  // of the interface that the sockets are bound to; 0: none
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  std::mutex mutex_;  // guards absence_
  std::optional<Absence> absence_;
};

// An interface that was made anew is another one for the sockets, even with the same name.
std::string UdpLink::follow_interface() {
  if (watch_.absence() || watch_.index() == index_) return "";
  LinkConfig config = config_;
  config.port = sockets_.front()->address().port;
  std::string error;
  const auto anew =
      UdpSocket::open(config, static_cast<unsigned>(sockets_.size()), true, troubles, error);
  for (std::size_t i = 0; i < anew.size() && error.empty(); ++i)
    error = anew[i]->take_place_of(*sockets_[i]);
  if (!error.empty())
    return "the interface is there again, but the link cannot use it: " + error +
           "; restart this program";
  index_ = watch_.index();
  return "";
}

std::string driver_of(const UdpSocket& socket) {
  if (!socket.has_ports()) return "ip";
  return std::string("udp") + (socket.segments() ? "+segment" : "") +
         (socket.joins() ? "+gro" : "");
}

class UdpPort final : public LinkPort {
 public:
  UdpPort(PortInfo info, std::shared_ptr<UdpLink> link, const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing),
        link_(std::move(link)),
        socket_(link_->socket(info_.shard)),
        receiver_(socket_, link_->peers, ways_, info_.mac, seat_ ? &*seat_ : nullptr,
                  link_->not_steered().empty()),
        sender_(socket_, link_->peers, ways_, loopback_, info_.mac, frame_room(info_.mtu),
                seat_ ? &*seat_ : nullptr) {}

  unsigned turn(Engine& engine, Time now) override;

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    return find_station(InternetAddress::of(address, 0), now);
  }
  std::optional<MacAddr> find_station(const InternetAddress& address, Time now) override;

  [[nodiscard]] std::vector<PortCounter> counters() const override;
  [[nodiscard]] LinkState state() const override {
    if (const auto absence = link_->absence()) return absence->state;
    return link_->troubles.are_about_length(seen_) ? LinkState::kMtu : LinkState::kUp;
  }
  [[nodiscard]] std::string trouble() const override {
    const auto absence = link_->absence();
    return absence ? absence->trouble : link_->troubles.text(seen_);
  }
  [[nodiscard]] std::string trouble_of(const MacAddr& station) const override;
  [[nodiscard]] std::string name_of_station(const MacAddr& station) const override {
    const auto address =
        station == info_.mac ? std::optional(socket_.address()) : link_->peers.look_up(station);
    return address ? to_string(*address) : LinkPort::name_of_station(station);
  }
  [[nodiscard]] std::string steering() const override;
  [[nodiscard]] int wake_fd() const override { return socket_.fd(); }
  bool prepare_to_sleep() override { return !sender_.is_waiting() && LinkPort::prepare_to_sleep(); }

 private:
  [[nodiscard]] std::string doubt_about(const MacAddr& station, const std::string& host) const;

  const std::shared_ptr<UdpLink> link_;
  UdpSocket& socket_;
  UdpWays ways_;
  UdpReceiver receiver_;
  UdpSender sender_;
  bool segments_ = socket_.segments();  // as info_ says
  Time seen_ = 0;                       // the time of the last turn
};

// Answers leave in the next turn, as on other links.
unsigned UdpPort::turn(Engine& engine, Time now) {
  seen_ = now;
  socket_.hear_again(now);
  if (info_.shard == Crossing::kOwner) link_->look(now);
  info_.interface = link_->interface();
  unsigned moved = loopback_.deliver(engine, now);
  if (seat_) moved += seat_->deliver(engine, now);
  if (now >= engine.next_deadline()) {
    // This thread may not have run for long: frames that arrived meanwhile end the silence.
    moved += receiver_.run(engine, tap_, now);
    engine.expire(now);
  }
  moved += sender_.run(engine, tap_, now);
  if (segments_ != socket_.segments()) {
    segments_ = socket_.segments();
    info_.driver = driver_of(socket_);
  }
  return moved + receiver_.run(engine, tap_, now);
}

std::string UdpPort::trouble_of(const MacAddr& station) const {
  if (const auto absence = link_->absence()) return absence->trouble;
  const auto address = link_->peers.look_up(station);
  if (!address) return "";
  std::string text = link_->troubles.text_of(*address, seen_);
  return text.empty() ? doubt_about(station, host_of(*address)) : text;
}

// protocol: 13.6
std::string UdpPort::doubt_about(const MacAddr& station, const std::string& host) const {
  std::size_t length = ways_.longest(station, seen_);
  std::string text = host + " answers, and ";
  if (length != 0) {
    text += "gets datagrams of up to " + std::to_string(length) +
            " bytes: if it is these that do not arrive";
  } else if (ways_.owes(station, seen_)) {
    length = info_.mtu;
    text += "no long datagram of what it is asked for has come: if it has sent some";
  } else {
    return "";
  }
  return text + ", the way carries shorter packets than this link, which has mtu=" +
         std::to_string(info_.mtu + socket_.headers()) +
         ", and no router says so; see whether 'ping -M do -s " + std::to_string(length) + " " +
         host +
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

std::optional<MacAddr> UdpPort::find_station(const InternetAddress& address, Time now) {
  InternetAddress to = address;
  if (to.port == 0) to.port = info_.peer_udp_port;
  const InternetAddress& own = socket_.address();
  // The name of a host often stands for a loopback address of it.
  const bool by_loopback = to.is_loopback() && !own.is_loopback() && to.port == own.port;
  if (to == own || by_loopback) return info_.mac;
  const bool carried =
      to.ipv4() ? socket_.family() == AF_INET || (socket_.is_any() && socket_.has_ports())
                : socket_.family() == AF_INET6;
  return carried ? link_->peers.know(to, now, socket_.used_for(to)) : std::nullopt;
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
  info.receive_queue = socket.receive_bytes() / (2 * info.mtu) + 1;
  info.address = socket.address().ipv4();
  info.internet = true;
  info.one_address = !socket.is_any();
  info.udp_port = socket.address().port;
  const bool named = config.port.value_or(0) != 0;
  info.peer_udp_port = named || !socket.has_ports() ? info.udp_port : wire::kUdpPort;
  info.ipv6 = socket.family() == AF_INET6;
  // protocol: 13.9
  info.routed = config.congestion.value_or(false);
  info.sources = &peers;
  return info;
}

}  // namespace

LinkPorts open_udp_ports(const LinkConfig& config, unsigned shards, std::string& error) {
  const auto link = std::make_shared<UdpLink>(config, system_random());
  error = link->open(shards);
  if (!error.empty()) return {};
  PortInfo info = describe(config, link->socket(0), link->peers);
  info.interface = link->interface();
  const auto crossing =
      shards > 1 ? std::make_shared<Crossing>(shards, frame_room(info.mtu)) : nullptr;
  LinkPorts ports;
  for (info.shard = 0; info.shard < shards; ++info.shard)
    ports.push_back(std::make_unique<UdpPort>(info, link, crossing));
  return ports;
}

}  // namespace stp::port
