// SPDX-License-Identifier: BSD-3-Clause
// The link of a UDP socket: any IP network, no driver, no privileges.
#include "dpdk_port/link/clock.h"
#include "dpdk_port/link/random.h"
#include "dpdk_port/link_port.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_receiver.h"
#include "dpdk_port/udp/udp_sender.h"
#include "dpdk_port/udp/udp_socket.h"

namespace stp::port {
namespace {

std::string driver_of(const UdpSocket& socket) {
  return std::string("udp") + (socket.segments() ? "+segment" : "") +
         (socket.joins() ? "+gro" : "");
}

class UdpPort final : public LinkPort {
 public:
  UdpPort(PortInfo info, std::unique_ptr<UdpSocket> socket, std::unique_ptr<Peers> peers)
      : LinkPort(std::move(info)),
        socket_(std::move(socket)),
        peers_(std::move(peers)),
        receiver_(*socket_, *peers_, info_.mac),
        sender_(*socket_, *peers_, loopback_, info_.mac, frame_room(info_.mtu)) {}

  unsigned turn(Engine& engine, Time now) override;

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    return find_station(InternetAddress::of(address, 0), now);
  }
  std::optional<MacAddr> find_station(const InternetAddress& address, Time now) override;

  [[nodiscard]] std::vector<PortCounter> counters() const override;
  [[nodiscard]] LinkState state() const override {
    return socket_->has_long_trouble(seen_) ? LinkState::kMtu : LinkState::kUp;
  }
  [[nodiscard]] std::string trouble() const override { return socket_->trouble(seen_); }
  [[nodiscard]] int wake_fd() const override { return socket_->fd(); }
  bool prepare_to_sleep() override { return !sender_.is_waiting() && LinkPort::prepare_to_sleep(); }

 private:
  const std::unique_ptr<UdpSocket> socket_;
  const std::unique_ptr<Peers> peers_;
  UdpReceiver receiver_;
  UdpSender sender_;
  bool segments_ = socket_->segments();  // as info_ says
  Time seen_ = 0;                        // the time of the last turn
};

// Answers leave in the next turn, as on other links.
unsigned UdpPort::turn(Engine& engine, Time now) {
  seen_ = now;
  socket_->hear_again(now);
  unsigned moved = loopback_.deliver(engine, now);
  if (now >= engine.next_deadline()) {
    // This thread may not have run for long: frames that arrived meanwhile end the silence.
    moved += receiver_.run(engine, tap_, now);
    engine.expire(now);
  }
  moved += sender_.run(engine, tap_, now);
  if (segments_ != socket_->segments()) {
    segments_ = socket_->segments();
    info_.driver = driver_of(*socket_);
  }
  return moved + receiver_.run(engine, tap_, now);
}

std::optional<MacAddr> UdpPort::find_station(const InternetAddress& address, Time now) {
  InternetAddress to = address;
  if (to.port == 0) to.port = info_.peer_udp_port;
  const InternetAddress& own = socket_->address();
  if (to == own) return info_.mac;
  const bool carried =
      to.ipv4() ? socket_->family() == AF_INET || socket_->is_any() : socket_->family() == AF_INET6;
  return carried ? peers_->know(to, now) : std::nullopt;
}

std::vector<PortCounter> UdpPort::counters() const {
  const UdpSendCounters& sent = sender_.counters();
  const UdpReceiveCounters& received = receiver_.counters();
  const UdpErrors& errors = socket_->errors();
  return {{"udp_rx_datagrams", received.datagrams},
          {"udp_rx_joined", received.joined},
          {"udp_rx_no_station", received.no_station},
          {"udp_tx_datagrams", sent.datagrams},
          {"udp_tx_calls", sent.calls},
          {"udp_tx_unknown", sent.unknown},
          {"udp_tx_too_long", errors.too_long},
          {"udp_tx_refused", errors.refused},
          {"udp_reports", errors.reports},
          {"udp_report_floods", errors.floods},
          {"udp_peers", peers_->known()},
          {"udp_strangers", peers_->strangers()},
          {"udp_displaced", peers_->displaced()},
          {"tx_kept", sent.kept},
          {"tx_dropped", sent.dropped},
          {"looped", loopback_.total()}};
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
  info.udp_port = socket.address().port;
  const auto given = config.options.find("port");
  info.peer_udp_port =
      given != config.options.end() && given->second != "0" ? info.udp_port : kUdpPort;
  info.ipv6 = socket.family() == AF_INET6;
  return info;
}

}  // namespace

LinkPorts open_udp_ports(const LinkConfig& config, unsigned shards, std::string& error) {
  if (shards != 1) {
    error = "a udp: link has one queue: leave queues= out";
    return {};
  }
  auto socket = UdpSocket::open(config, error);
  if (!socket) return {};
  auto peers = std::make_unique<Peers>(system_random());
  PortInfo info = describe(config, *socket, *peers);
  LinkPorts ports;
  ports.push_back(std::make_unique<UdpPort>(std::move(info), std::move(socket), std::move(peers)));
  return ports;
}

}  // namespace stp::port
