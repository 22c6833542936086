// SPDX-License-Identifier: BSD-3-Clause
// The Ports of every link on a DPDK device: the Port that owns the device and looks after it, and
// those of other shards, which use queues of their own, as far as the device has them.

#include <rte_errno.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "dpdk_port/dpdk/device.h"
#include "dpdk_port/link/arp.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link_counters.h"
#include "dpdk_port/link_port.h"
#include "dpdk_port/port.h"
#include "stp/base/assert.h"
#include "stp/base/mutex.h"

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

// The state shared by all shards of a link. The owner of the device updates it.
struct Uplink {
  explicit Uplink(const ArpConfig& config) : arp(config) {}

  struct News {
    LinkState state = LinkState::kUnknown;
    std::string trouble;
    std::optional<Ipv4> address;
    unsigned megabits = 0;
  };
  void tell(News news) {
    const Lock lock(mutex_);
    news_ = std::move(news);
  }
  News news() {
    const Lock lock(mutex_);
    return news_;
  }

  Arp arp;

 private:
  Mutex mutex_;
  News news_ STP_GUARDED_BY(mutex_);
};

// What the Ports of all shards have. The device ends with the last of them.
class DevicePort : public LinkPort {
 public:
  bool enable_attaching(std::string& error) {
    std::string name = "stp_attached_" + share_.device().number();
    if (info_.shard != 0) name += "_" + std::to_string(info_.shard);
    info_.attaches = transmitter_.enable_attaching(name);
    if (!info_.attaches) error = std::string("no memory for frames: ") + rte_strerror(rte_errno);
    return info_.attaches;
  }

 protected:
  DevicePort(PortInfo info, std::shared_ptr<Device> device, std::shared_ptr<Uplink> uplink,
             const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing),
        device_(std::move(device)),
        share_(device_->share(info_.shard)),
        uplink_(std::move(uplink)),
        receiver_(share_, uplink_->arp, seat_ ? &*seat_ : nullptr),
        transmitter_(share_, uplink_->arp, loopback_, seat_ ? &*seat_ : nullptr) {}

  // Answers leave in the next turn, so that the program sees its data before the acknowledgement is
  // built, and its own answer shares a burst with the acknowledgement.
  unsigned move_frames(Engine& engine, Time now) {
    unsigned moved = 0;
    if (now >= engine.next_deadline()) {
      // This thread may not have run for long: frames that arrived meanwhile end the silence.
      moved += receiver_.run(engine, tap_, now);
      engine.expire(now);
    }
    moved += transmitter_.run(engine, tap_, now);
    return moved + receiver_.run(engine, tap_, now);
  }
  unsigned deliver(Engine& engine, Time now) {
    const unsigned looped = loopback_.deliver(engine, now);
    return seat_ ? looped + seat_->deliver(engine, now) : looped;
  }

  void add_queue_counters(std::vector<PortCounter>& to) const {
    add(to, receiver_.counters());
    add(to, transmitter_.counters());
    to.push_back({"tx_no_buffer", transmitter_.counters().no_buffer});
  }
  void add_shard_counters(std::vector<PortCounter>& to) const {
    if (seat_) to.push_back({"wrong_queue", receiver_.counters().wrong_queue});
    add_seat_counters(to);
  }

  // In this order: waiting frames return to the device's pools before it closes.
  const std::shared_ptr<Device> device_;
  DeviceShare& share_;
  const std::shared_ptr<Uplink> uplink_;
  Receiver receiver_;
  Transmitter transmitter_;
};

// A shard that does not own the device.
class ShardPort final : public DevicePort {
 public:
  ShardPort(PortInfo info, std::shared_ptr<Device> device, std::shared_ptr<Uplink> uplink,
            const std::shared_ptr<Crossing>& crossing)
      : DevicePort(std::move(info), std::move(device), std::move(uplink), crossing),
        news_(uplink_->news()) {}

  unsigned turn(Engine& engine, Time now) override {
    look(now);
    share_.enter();
    const unsigned moved = deliver(engine, now) + move_frames(engine, now);
    share_.leave();
    return moved;
  }

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    const auto known = uplink_->arp.resolve(address, now);
    if (!known) seat_->crossing().wake(Crossing::kOwner);  // which sends the request
    return known;
  }
  [[nodiscard]] std::vector<PortCounter> counters() const override {
    std::vector<PortCounter> all;
    add_device_counters(all, device_->statistics(info_.shard));
    add_queue_counters(all);
    all.push_back({"looped", loopback_.total()});
    add_shard_counters(all);
    return all;
  }
  [[nodiscard]] LinkState state() const override { return news_.state; }
  [[nodiscard]] std::string trouble() const override { return news_.trouble; }

 private:
  void look(Time now) {
    if (now < look_at_) return;
    look_at_ = now + kLookAtLink;
    news_ = uplink_->news();
    info_.address = news_.address;
    info_.megabits = news_.megabits;
  }

  Uplink::News news_;
  Time look_at_ = 0;
};

// The shard that owns the device.
class EthdevPort final : public DevicePort {
 public:
  EthdevPort(PortInfo info, std::shared_ptr<Device> device, std::shared_ptr<Uplink> uplink,
             const LinkConfig& config, const std::shared_ptr<Crossing>& crossing)
      : DevicePort(std::move(info), std::move(device), std::move(uplink), crossing),
        follows_address_(device_->interface() != nullptr && !config.address) {
    tell_others();
  }

  unsigned turn(Engine& engine, Time now) override {
    const unsigned moved = deliver(engine, now);
    device_->tend(now);
    if (now >= look_at_link_) look_at_link(now);
    return moved + move_frames(engine, now);
  }

  std::optional<MacAddr> resolve(Ipv4 address, Time now) override {
    return arp_.resolve(address, now);
  }

  [[nodiscard]] std::vector<PortCounter> counters() const override {
    std::vector<PortCounter> all;
    add_device_counters(all, device_->statistics(info_.shard));
    all.push_back({"link_tx_refused", device_->refused()});
    add_queue_counters(all);
    all.insert(all.end(), {{"link_sought", device_->sought()}, {"looped", loopback_.total()}});
    add(all, arp_.counters());
    add_shard_counters(all);
    return all;
  }

  [[nodiscard]] LinkState state() const override {
    const LinkState state = device_->state();
    const bool alone = !arp_.conflict() && !arp_.twin();
    return state == LinkState::kUp && !alone ? LinkState::kDuplicate : state;
  }
  [[nodiscard]] std::string trouble() const override {
    const std::string of_device = device_->trouble(), of_address = trouble_of_address();
    return of_device + (of_device.empty() || of_address.empty() ? "" : "; ") + of_address;
  }
  [[nodiscard]] std::string steering() const override { return device_->steering(); }
  [[nodiscard]] int wake_fd() const override { return device_->wake_fd(); }
  [[nodiscard]] Wakes wakes() const override {
    if (wake_fd() < 0) return Wakes::kNever;
    const auto* const waking = device_->waking();
    if (waking == nullptr) return Wakes::kAlways;
    return waking->is_woken() ? Wakes::kMostly : Wakes::kNever;
  }
  bool prepare_to_sleep() override {
    return LinkPort::prepare_to_sleep() && device_->prepare_to_sleep();
  }
  void woke_up() override {
    LinkPort::woke_up();
    if (auto* const waking = device_->waking(); waking != nullptr) waking->woke_up();
  }

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
    if (const std::optional<Ipv4> twin = arp_.twin()) {
      return "MAC address " + to_string(info_.mac) + " is also that of the station with " +
             to_string(*twin) +
             ", and frames reach one or the other: give one of the two stations another one "
             "(ip link set NAME address MAC, or mac=)";
    }
    const std::optional<MacAddr> other = arp_.conflict();
    if (!other || !info_.address) return {};
    return "address " + to_string(*info_.address) + " is also that of " + to_string(*other) +
           ", and peers reach one or the other: give one of the two stations another address";
  }

  const bool follows_address_;
  Arp& arp_ = uplink_->arp;
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
  spec.shards = shards;
  const std::shared_ptr<Device> device = Device::open(spec, error);
  if (!device) return {};
  PortInfo info = describe(config, *device);
  const auto crossing =
      shards > 1 ? std::make_shared<Crossing>(shards, frame_room(info.mtu)) : nullptr;
  const auto uplink = std::make_shared<Uplink>(
      ArpConfig{info.mac, info.address, spec.answers_arp, config.vlan, config.arp});
  const auto attaches = [&](unsigned shard) {
    // Where it has no queue, its frames go to a ring, which copies the memory.
    const bool by_device = device->share(shard).sends();
    return !config.copy && (!by_device || (device->chains() && device->copies()));
  };
  LinkPorts ports;
  for (info.shard = 0; info.shard < shards; ++info.shard) {
    std::unique_ptr<DevicePort> port;
    if (info.shard == DeviceShare::kOwner)
      port = std::make_unique<EthdevPort>(info, device, uplink, config, crossing);
    else
      port = std::make_unique<ShardPort>(info, device, uplink, crossing);
    if (attaches(info.shard) && !port->enable_attaching(error)) return {};
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace stp::port
