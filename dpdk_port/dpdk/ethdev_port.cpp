// SPDX-License-Identifier: BSD-3-Clause
// The Ports of every link on a DPDK device: the Port that has the device, and those of other
// shards, which send and receive through it.
#include <rte_errno.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "dpdk_port/dpdk/receiver.h"
#include "dpdk_port/dpdk/transmitter.h"
#include "dpdk_port/soft_port.h"

namespace stp::port {
namespace {

PortInfo describe(const LinkConfig& config, const Device& device) {
  PortInfo info;
  info.link = config.text;
  info.device = device.spec().name;
  info.driver = device.driver();
  info.mac = device.mac();
  info.mtu = device.mtu();
  info.max_stu = max_stu_of(device.mtu());
  info.receive_queue = device.receive_queue();
  info.address = device.spec().address;
  info.megabits = device.megabits();
  return info;
}

// The interval of checks of the link's state.
constexpr Time kLookAtLink = 10 * kMillisecond;

// The state shared by all shards of a link. The shard that has the device updates it.
struct Uplink {
  explicit Uplink(const ArpConfig& config) : arp(config) {}

  struct News {
    LinkState state = LinkState::kUnknown;
    std::string trouble;
    std::optional<Ipv4> address;
    unsigned megabits = 0;
  };
  void tell(News news) {
    const std::lock_guard lock(mutex_);
    news_ = std::move(news);
  }
  News news() {
    const std::lock_guard lock(mutex_);
    return news_;
  }

  Arp arp;

 private:
  std::mutex mutex_;
  News news_;
};

// A shard without the device.
class ShardPort final : public SoftPort {
 public:
  ShardPort(PortInfo info, std::shared_ptr<Uplink> uplink,
            const std::shared_ptr<Crossing>& crossing)
      : SoftPort(std::move(info), crossing), uplink_(std::move(uplink)), news_(uplink_->news()) {}

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    const auto known = uplink_->arp.resolve(address, now);
    if (!known) seat_->crossing().wake(Crossing::kOwner);  // which sends the request
    return known;
  }
  [[nodiscard]] std::vector<PortCounter> counters() const override {
    std::vector<PortCounter> all{{"looped", loopback_.total()}};
    add_seat_counters(all);
    return all;
  }
  [[nodiscard]] LinkState state() const override { return news_.state; }
  [[nodiscard]] std::string trouble() const override { return news_.trouble; }

 private:
  void send_away(const TxFrame& frame) override {
    seat_->give_to_link(Bytes(frame.head, frame.head_length), frame.attached);
  }
  void look(Time now) override {
    if (now < look_at_) return;
    look_at_ = now + kLookAtLink;
    news_ = uplink_->news();
    info_.address = news_.address;
    info_.megabits = news_.megabits;
  }

  const std::shared_ptr<Uplink> uplink_;
  Uplink::News news_;
  Time look_at_ = 0;
};

// The shard that has the device.
class EthdevPort final : public LinkPort {
 public:
  EthdevPort(PortInfo info, std::unique_ptr<Device> device, const LinkConfig& config,
             const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing),
        device_(std::move(device)),
        follows_address_(device_->interface() != nullptr && !config.address),
        uplink_(std::make_shared<Uplink>(ArpConfig{
            info_.mac, info_.address, device_->spec().answers_arp, config.vlan, config.arp})),
        receiver_(*device_, arp_, seat_ ? &*seat_ : nullptr),
        transmitter_(*device_, arp_, loopback_, seat_ ? &*seat_ : nullptr) {
    tell_others();
  }

  [[nodiscard]] const std::shared_ptr<Uplink>& uplink() const { return uplink_; }

  bool enable_attaching(std::string& error) {
    info_.attaches = transmitter_.enable_attaching("stp_attached_" + device_->number());
    if (!info_.attaches) error = std::string("no memory for frames: ") + rte_strerror(rte_errno);
    return info_.attaches;
  }

  // Answers leave in the next turn, so that the program sees its data before the acknowledgement is
  // built, and its own answer shares a burst with the acknowledgement.
  unsigned turn(Engine& engine, Time now) override {
    unsigned moved = loopback_.deliver(engine, now);
    if (seat_) moved += seat_->deliver(engine, now);
    device_->tend(now);
    if (now >= look_at_link_) look_at_link(now);
    if (now >= engine.next_deadline()) {
      // This thread may not have run for long: frames that arrived meanwhile end the silence.
      moved += receiver_.run(engine, tap_, now);
      engine.expire(now);
    }
    moved += transmitter_.run(engine, tap_, now);
    return moved + receiver_.run(engine, tap_, now);
  }

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    return arp_.resolve(address, now);
  }

  [[nodiscard]] std::vector<PortCounter> counters() const override {
    const rte_eth_stats link = device_->statistics();
    const ArpCounters arp = arp_.counters();
    std::vector<PortCounter> all{{"link_rx_packets", link.ipackets},
                                 {"link_tx_packets", link.opackets},
                                 {"link_rx_missed", link.imissed},
                                 {"link_rx_errors", link.ierrors},
                                 {"link_rx_nombuf", link.rx_nombuf},
                                 {"link_tx_errors", link.oerrors},
                                 {"link_tx_refused", device_->refused()},
                                 {"rx_chained", receiver_.counters().chained},
                                 {"rx_oversize", receiver_.counters().oversize},
                                 {"tx_kept", transmitter_.counters().kept},
                                 {"tx_dropped", transmitter_.counters().dropped},
                                 {"tx_no_buffer", transmitter_.counters().no_buffer},
                                 {"link_sought", device_->sought()},
                                 {"looped", loopback_.total()},
                                 {"arp_requests_sent", arp.requests_sent},
                                 {"arp_answers_sent", arp.answers_sent},
                                 {"arp_learned", arp.learned},
                                 {"arp_ignored", arp.ignored},
                                 {"arp_probes_sent", arp.probes_sent},
                                 {"arp_conflicts", arp.conflicts},
                                 {"arp_dropped", arp.dropped}};
    add_seat_counters(all);
    return all;
  }

  [[nodiscard]] LinkState state() const override {
    const LinkState state = device_->state();
    return state == LinkState::kUp && arp_.conflict() ? LinkState::kDuplicate : state;
  }
  [[nodiscard]] std::string trouble() const override {
    const std::string of_device = device_->trouble(), of_address = trouble_of_address();
    return of_device + (of_device.empty() || of_address.empty() ? "" : "; ") + of_address;
  }
  [[nodiscard]] int wake_fd() const override { return device_->wake_fd(); }

 private:
  void tell_others() {
    if (!seat_) return;
    Uplink::News news{state(), {}, info_.address, info_.megabits};
    if (news.state != LinkState::kUp) news.trouble = trouble();
    uplink_->tell(std::move(news));
  }
  // A kernel interface may get its first address or another one later.
  void look_at_link(Time now) {
    look_at_link_ = now + kLookAtLink;
    const bool was_up = std::exchange(up_, carries_frames(device_->state()));
    const auto address = follows_address_ ? device_->interface()->facts().address : info_.address;
    if ((up_ && !was_up) || address != info_.address) arp_.begin(address, now);
    info_.address = address;
    info_.megabits = device_->megabits();
    if (up_) arp_.tend(now);
    tell_others();
  }
  [[nodiscard]] std::string trouble_of_address() const {
    const std::optional<MacAddr> other = arp_.conflict();
    if (!other || !info_.address) return {};
    return "address " + to_string(*info_.address) + " is also that of " + to_string(*other) +
           ", and peers reach one or the other: give one of the two stations another address";
  }

  // In this order: waiting frames return to the device's pool before the device closes.
  std::unique_ptr<Device> device_;
  const bool follows_address_;
  const std::shared_ptr<Uplink> uplink_;
  Arp& arp_ = uplink_->arp;
  Receiver receiver_;
  Transmitter transmitter_;
  bool up_ = false;  // at the last check
  Time look_at_link_ = 0;
};

}  // namespace

LinkPorts open_ethdev_ports(const LinkConfig& config, unsigned shards, std::string& error) {
  static std::atomic<unsigned> serial{0};
  DeviceSpec spec;
  if (!make_device_spec(config, serial.fetch_add(1, std::memory_order_relaxed), spec, error)) {
    return {};
  }
  std::unique_ptr<Device> device = Device::open(spec, error);
  if (!device) return {};
  const bool attaches = !config.copy && device->chains() && device->copies();
  PortInfo info = describe(config, *device);
  const auto crossing =
      shards > 1 ? std::make_shared<Crossing>(shards, frame_room(info.mtu)) : nullptr;
  auto owner = std::make_unique<EthdevPort>(info, std::move(device), config, crossing);
  if (attaches && !owner->enable_attaching(error)) return {};
  const auto uplink = owner->uplink();
  LinkPorts ports;
  ports.push_back(std::move(owner));
  info.attaches = !config.copy;  // to a ring, which copies the memory
  for (info.shard = 1; info.shard < shards; ++info.shard) {
    ports.push_back(std::make_unique<ShardPort>(info, uplink, crossing));
  }
  return ports;
}

}  // namespace stp::port
