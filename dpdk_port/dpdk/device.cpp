// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/device.h"

#include <rte_dev.h>
#include <rte_errno.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>

#include "dpdk_port/dpdk/eal.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/inventory.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

constexpr std::string_view kTapDriver = "net_tap";
// Memory without hugepages. It is only address space until used: room for a dozen links with jumbo
// frames. With a NIC, VFIO pins it.
constexpr unsigned kVirtualMegabytes = 512, kMegabytesOfShard = 64;

// Whether the driver copies frames. Other drivers may hold a frame, and so user memory, until more
// is sent, or access it by an address that only DPDK's own memory has (hardware, virtio-user).
bool copies_frames(const DeviceSpec& spec, std::string_view driver) {
  constexpr std::array<std::string_view, 4> kDrivers{"net_af_packet", "net_memif", "net_pcap",
                                                     kTapDriver};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end() &&
         spec.arguments.find("zero-copy=yes") == std::string::npos;
}

MacAddr from_dpdk(const rte_ether_addr& address) {
  MacAddr mac;
  std::memcpy(mac.octets.data(), address.addr_bytes, mac.octets.size());
  return mac;
}

rte_ether_addr to_dpdk(const MacAddr& mac) {
  rte_ether_addr address;
  std::memcpy(address.addr_bytes, mac.octets.data(), mac.octets.size());
  return address;
}

}  // namespace

std::unique_ptr<Device> Device::open(const DeviceSpec& spec, std::string& error) {
  const bool pci = spec.bus == "pci";
  std::unique_ptr<Device> device(new Device(spec));
  if (pci && !device->claim_nic(error)) return nullptr;
  take_dpdk_message();  // discards messages about other devices
  const unsigned virtual_megabytes = kVirtualMegabytes + kMegabytesOfShard * (spec.shards - 1);
  if (!start_eal(pci ? spec.name : "", pci ? pinned_megabytes(spec) : virtual_megabytes, error)) {
    return nullptr;
  }
  const bool opened = spec.memif           ? device->open_memif(error)
                      : spec.packet_socket ? device->open_socket(error)
                                           : device->open_ethdev(error);
  if (!opened) return nullptr;
  for (const auto& share : device->shares_) share->settle();
  return device;
}

bool Device::open_ethdev(std::string& error) {
  if (!probe(error) || !configure(error) || !take_mtu(error) || !take_mac(error) || !start(error))
    return false;
  find_wake_fd();
  watch_events();
  if (!spec_.interface.empty()) watch_ = std::make_unique<InterfaceWatch>(spec_.interface);
  look(0);
  return true;
}

Device::Device(const DeviceSpec& spec) : spec_(spec) {
  for (unsigned i = 0; i < spec.shards; ++i)
    shares_.push_back(std::make_unique<DeviceShare>(*this, PortShare{spec.shards, i}));
}

Device::~Device() {
  if (closing_.valid())
    closing_.wait();
  else
    shut();
}

void Device::shut() {
  // This driver talks to its peer on the interrupt thread without a guard against a concurrent
  // close.
  if (driver_ == "net_memif") {
    run_on_interrupt_thread([this] { close(); });
  } else {
    close();
  }
}

void Device::close() {
  gate_.close();
  if (port_ != RTE_MAX_ETHPORTS) unwatch_events();
  if (promiscuous_) rte_eth_promiscuous_disable(port_);
  if (started_) rte_eth_dev_stop(port_);
  if (port_ != RTE_MAX_ETHPORTS) rte_eth_dev_close(port_);
  if (probed_) rte_eal_hotplug_remove(spec_.bus.c_str(), spec_.name.c_str());
}

bool Device::claim_nic(std::string& error) {
  if (!may_open_nics(error)) return false;
  const PciNic nic = look_up_pci_nic(spec_.name);
  const std::uint64_t pinned = std::uint64_t{pinned_megabytes(spec_)} << 20;
  error = obstacle_of(nic, rights_on(nic, has_hugepages()), pinned);
  if (!error.empty()) return false;
  if (nic.by_uio()) owner_ = PciOwner::claim(nic.address, nic.memory, error);
  return error.empty();
}

bool Device::probe(std::string& error) {
  const std::string& name = spec_.name;
  // If the NIC was the first link, EAL probed it when it started: DPDK's message is about that.
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port_) == 0) return own_port(error);
  const int result = rte_eal_hotplug_add(spec_.bus.c_str(), name.c_str(), spec_.arguments.c_str());
  if (result != 0 && result != -EEXIST) {
    error = failure("DPDK cannot open " + name, result);
    return false;
  }
  probed_ = true;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port_) == 0) return own_port(error);
  port_ = RTE_MAX_ETHPORTS;
  error = spec_.bus == "pci" ? failure("no DPDK driver has taken the NIC " + name, -ENODEV)
                             : name + " is no network device";
  return false;
}

// Only one Device per DPDK device.
bool Device::own_port(std::string& error) {
  rte_eth_dev_owner owner{};
  const bool owned = rte_eth_dev_owner_get(port_, &owner) == 0 && owner.id != RTE_ETH_DEV_NO_OWNER;
  if (owned || (spec_.bus == "vdev" && !probed_)) {
    port_ = RTE_MAX_ETHPORTS;
    error = "this process already uses device " + spec_.name +
            (spec_.bus == "vdev" ? ": give this one another number" : "");
    return false;
  }
  probed_ = true;
  spec_.name.copy(owner.name, sizeof owner.name - 1);
  rte_eth_dev_owner_new(&owner.id);
  rte_eth_dev_owner_set(port_, &owner);
  take_dpdk_message();
  return true;
}

bool Device::configure(std::string& error) {
  take_dpdk_message();
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(port_, &info); result != 0) {
    error = failure("the device does not describe itself", result);
    return false;
  }
  driver_ = info.driver_name;
  copies_ = copies_frames(spec_, driver_);
  chains_ = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  rte_eth_conf conf{};  // rxmode.mtu stays 0: drivers that carry jumbo frames reject it
  if (chains_) conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  filters_vlans_ = plan(info).tell_vlan;
  if (filters_vlans_) conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
  conf.intr_conf.rmv = (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0 ? 1 : 0;
  conf.intr_conf.lsc = (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0 ? 1 : 0;
  conf.intr_conf.rxq = driver_ == kTapDriver ? 1 : 0;
  return configure_queues(info, conf, error) && set_up_queues(info, error);
}

bool Device::open_socket(std::string& error) {
  driver_ = "af_packet";
  chains_ = copies_ = true;
  mtu_ = spec_.mtu;
  mac_ = *spec_.mac;
  socket_ = PacketSocket::open(
      {.interface = spec_.interface, .room = frame_room(mtu_), .mac = mac_, .qdisc = spec_.qdisc},
      error);
  if (!socket_ || !make_pools(error)) return false;
  receive_queue_ = socket_->capacity();
  wake_fd_ = socket_->fd();
  started_ = true;
  return true;
}

bool Device::open_memif(std::string& error) {
  const DeviceSpec::Memif& memif = *spec_.memif;
  driver_ = "memif";
  chains_ = copies_ = true;
  mtu_ = spec_.mtu;
  mac_ = *spec_.mac;
  memif_ = MemifLink::open({.socket = memif.socket,
                            .serves = memif.makes_socket,
                            .id = memif.id,
                            .log2_ring = memif.log2_ring,
                            .buffer = memif.buffer,
                            .shards = spec_.shards},
                           error);
  if (!memif_ || !make_pools(error)) return false;
  wake_fd_ = memif_->memif().waking().descriptor();
  memif_->tend(now());  // shows from the start what is missing
  started_ = true;
  return true;
}

bool Device::prepare_to_sleep() {
  if (!memif_) return true;
  memif_->memif().waking().fall_asleep();
  return !memif_->connected() || memif_->memif().receivers()[0].waiting() == 0;
}

std::string Device::number() const {
  if (memif_) return spec_.name;
  return socket_ ? "socket" + std::to_string(socket_->fd()) : std::to_string(port_);
}

rte_eth_stats Device::statistics(unsigned shard) const {
  rte_eth_stats out{};
  if (memif_) {
    const MemifCounters& counted = memif_->counters(shard);
    out.ipackets = counted.received;
    out.opackets = counted.sent;
    out.ierrors = counted.too_long;
    if (shard == DeviceShare::kOwner) out.ierrors += memif_->memif().broken();
    out.rx_nombuf = counted.no_buffer;
    return out;
  }
  if (shard != DeviceShare::kOwner) return out;
  if (!socket_) {
    if (!is_gone() && port_ != RTE_MAX_ETHPORTS) rte_eth_stats_get(port_, &out);
    return out;
  }
  const PacketCounters& counted = socket_->counters();
  out.ipackets = counted.received;
  out.opackets = counted.sent;
  out.imissed = counted.missed;
  out.ierrors = counted.too_long;
  out.rx_nombuf = counted.no_buffer;
  return out;
}

bool Device::take_mtu(std::string& error) {
  mtu_ = spec_.mtu;
  take_dpdk_message();
  if (!spec_.sets_mtu || rte_eth_dev_set_mtu(port_, static_cast<std::uint16_t>(mtu_)) == 0) {
    return true;
  }
  // Virtual devices carry whatever their buffers hold. Hardware does not: uses its reported limit.
  std::uint16_t actual = 0;
  if (spec_.bus == "pci" && rte_eth_dev_get_mtu(port_, &actual) == 0 && actual < mtu_) {
    error = failure(
        "the NIC refuses mtu=" + std::to_string(mtu_) + " (it has " + std::to_string(actual) + ")",
        -EINVAL);
    return false;
  }
  return true;
}

bool Device::take_mac(std::string& error) {
  take_dpdk_message();
  rte_ether_addr own{};
  if (const int result = rte_eth_macaddr_get(port_, &own); result != 0) {
    error = failure("the device has no MAC address", result);
    return false;
  }
  mac_ = from_dpdk(own);
  if (!spec_.mac && mac_.is_zero()) {
    rte_eth_random_addr(own.addr_bytes);  // net_ring, for one, has none
    mac_ = from_dpdk(own);
    return true;
  }
  if (!spec_.mac || *spec_.mac == mac_) return true;
  mac_ = *spec_.mac;
  rte_ether_addr wanted = to_dpdk(mac_);
  if (spec_.sets_mac && rte_eth_dev_default_mac_addr_set(port_, &wanted) == 0) return true;
  // The device keeps its own address but can also receive frames for ours. Drivers that reject a
  // second address are those that filter nothing.
  promiscuous_ = rte_eth_promiscuous_enable(port_) == 0;
  return true;
}

bool Device::start(std::string& error) {
  take_dpdk_message();
  const int result = rte_eth_dev_start(port_);
  started_ = result == 0;
  if (!started_) error = failure("the device does not start", result);
  if (!started_ || (filters_vlans_ && !let_vlan_through(error))) return false;
  steer();
  gate_.open();
  return true;
}

bool Device::let_vlan_through(std::string& error) {
  take_dpdk_message();
  const int result = rte_eth_dev_vlan_filter(port_, *spec_.vlan, 1);
  if (result == 0) return true;
  error =
      failure("the device does not let VLAN " + std::to_string(*spec_.vlan) + " through", result);
  return false;
}

void Device::find_wake_fd() {
  if (driver_ == kTapDriver) wake_fd_ = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, 0);
}

// The queues of a device, the mbufs of each shard, and what brings frames to the shards.

namespace {

// Of a shard that has no queues of an ethdev: no driver keeps its mbufs between turns. A burst that
// is received, one that waits, and one of spares.
constexpr unsigned kMbufsWithoutQueues = 4 * kBurst;

}  // namespace

DevicePlan Device::plan(const rte_eth_dev_info& info) const {
  return plan_device(spec_,
                     {.driver = info.driver_name,
                      .least_room = info.min_rx_bufsize,
                      .filters_vlans = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0,
                      .most_receive_queues = info.max_rx_queues,
                      .most_send_queues = info.max_tx_queues});
}

// A device that does not accept several queues is used with one.
bool Device::configure_queues(const rte_eth_dev_info& info, rte_eth_conf& conf,
                              std::string& error) {
  const DevicePlan planned = plan(info);
  receive_queues_ = planned.receive_queues;
  send_queues_ = planned.send_queues;
  steering_ = planned.steering;
  not_steered_.clear();
  const auto configure = [&] {
    return rte_eth_dev_configure(port_, static_cast<std::uint16_t>(receive_queues_),
                                 static_cast<std::uint16_t>(send_queues_), &conf);
  };
  int result = configure();
  if (result != 0 && (receive_queues_ > 1 || send_queues_ > 1)) {
    not_steered_ = failure("it cannot be configured with several queues", result);
    receive_queues_ = send_queues_ = 1;
    steering_ = Steering::kNothing;
    result = configure();
  }
  if (result != 0) error = failure("the device cannot be configured", result);
  return result == 0;
}

bool Device::set_up_queues(const rte_eth_dev_info& info, std::string& error) {
  take_dpdk_message();
  std::uint16_t rx = kDescriptors, tx = kDescriptors;
  if (rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx, &tx) != 0) {
    rx = tx = kDescriptors;  // not every driver states its limits
  }
  receive_queue_ = rx;
  const std::size_t room = plan(info).room;
  for (const auto& share : shares_) {
    const PortShare of = share->of();
    const unsigned receives = (receive_queues_ + of.count - 1 - of.index) / of.count;
    const unsigned sends = queues_of_ethdev(of).count;
    const unsigned mbufs =
        receives + sends == 0 ? kMbufsWithoutQueues : receives * rx + sends * tx + kSpareMbufs;
    if (!make_pool(*share, mbufs, room, error)) return false;
  }
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(port_));
  rte_eth_txconf txconf = info.default_txconf;
  txconf.offloads = chains_ ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0;
  int result = 0;
  for (unsigned queue = 0; queue < receive_queues_ && result == 0; ++queue)
    result = rte_eth_rx_queue_setup(port_, static_cast<std::uint16_t>(queue), rx, socket, nullptr,
                                    shares_[queue % shares_.size()]->pool());
  for (unsigned queue = 0; queue < send_queues_ && result == 0; ++queue)
    result = rte_eth_tx_queue_setup(port_, static_cast<std::uint16_t>(queue), tx, socket, &txconf);
  if (result != 0) error = failure("the device's queues cannot be set up", result);
  return result == 0;
}

bool Device::make_pool(DeviceShare& share, unsigned mbufs, std::size_t room, std::string& error) {
  if (share.pool() != nullptr) return true;  // the device is back: earlier frames may still wait
  const unsigned shard = share.of().index;
  const std::string name =
      "stp_frames_" + number() + (shard == 0 ? "" : "_" + std::to_string(shard));
  // An ethdev is closed by the owner, and gives back mbufs of all shards then. They may be taking
  // some: only the queues are behind the gate.
  const bool one_thread = copies_ && (spec_.shards == 1 || socket_ || memif_);
  share.set_pool(
      make_mbuf_pool(name, mbufs, room, one_thread ? PoolUse::kOneThread : PoolUse::kAnyThread));
  if (share.pool() == nullptr) {
    error = failure("no memory for frame buffers, " + std::to_string(mbufs) + " of " +
                        std::to_string(room) + " bytes (sysctl vm.nr_hugepages=512 reserves more" +
                        (shares_.size() > 1 ? ", a smaller queues= needs less)" : ")"),
                    -rte_errno);
  }
  return share.pool() != nullptr;
}

// Where there is no ethdev.
bool Device::make_pools(std::string& error) {
  for (const auto& share : shares_) {
    const bool owns = share->of().index == DeviceShare::kOwner;
    if (!make_pool(*share, owns ? kSpareMbufs : kMbufsWithoutQueues, spec_.data_room, error))
      return false;
  }
  return true;
}

// Rules are asked for where each shard has a queue.
void Device::steer() {
  if (spec_.shards == 1) return;
  if (receive_queues_ < spec_.shards) {
    if (not_steered_.empty())
      not_steered_ = "it has " + std::to_string(receive_queues_) + " receive queue" +
                     (receive_queues_ == 1 ? "" : "s");
  } else if (steering_ == Steering::kRules) {
    not_steered_ = steer_by_port(flow_calls_of(port_), receive_queues_, spec_.vlan);
    take_dpdk_message();
  }
  steers_ = not_steered_.empty();
}

// ---- who brings frames to the shards

std::string Device::steering() {
  if (spec_.shards == 1) return {};
  if (socket_) return "shard 1 receives and sends for all: a packet socket has one queue";
  if (memif_) return steering_of_memif();
  const std::string sends = send_queues_ >= spec_.shards
                                ? "each shard sends on its own"
                                : "it has " + std::to_string(send_queues_) +
                                      " to send, and other shards send through shard 1";
  const std::string queues = std::to_string(receive_queues_) + " receive queues; " + sends;
  if (!not_steered_.empty()) return "shards hand frames over: " + not_steered_ + "; " + sends;
  return steering_ == Steering::kPeer ? "the peer picks the queue: " + queues
                                      : "the device picks the queue by D_Port: " + queues;
}

std::string Device::steering_of_memif() {
  if (!memif_->connected()) return "not decided: no peer";
  const std::size_t in = memif_->memif().receivers().size();
  const std::size_t out = memif_->memif().senders().size();
  const std::string counts = std::to_string(in) + " in, " + std::to_string(out) + " out";
  if (in < spec_.shards)
    return "shards hand frames over: the peer has made few queues for " +
           std::to_string(spec_.shards) + " shards (" + counts + ")";
  return "the peer picks the queue: " + counts;
}

// The state of a device, its description, and the handling of one that was removed or needs a
// reset. DPDK reports events on its interrupt thread, which cannot close a device: the polling
// thread does.

namespace {

constexpr std::array kEvents{RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RMV,
                             RTE_ETH_EVENT_INTR_RESET};
// The interval of state checks without interrupts. A NIC may have to query its transceiver; for
// virtual devices it is a word in memory.
constexpr Time kLookAtNic = 100 * kMillisecond, kLook = 10 * kMillisecond;
// The interval of searches for a device that has gone.
constexpr Time kReturn = kSecond;

}  // namespace

// ---- what DPDK tells

void Device::watch_events() {
  for (const auto event : kEvents) rte_eth_dev_callback_register(port_, event, on_event, this);
  rte_dev_event_callback_register(spec_.name.c_str(), on_removal, this);
  // The kernel's event for NICs under uio; VFIO reports by itself.
  static std::once_flag listening;
  if (spec_.bus == "pci") std::call_once(listening, rte_dev_event_monitor_start);
}

void Device::unwatch_events() {
  rte_dev_event_callback_unregister(spec_.name.c_str(), on_removal, this);
  for (const auto event : kEvents) rte_eth_dev_callback_unregister(port_, event, on_event, this);
}

int Device::on_event(std::uint16_t, rte_eth_event_type event, void* device, void*) {
  auto& self = *static_cast<Device*>(device);
  if (event == RTE_ETH_EVENT_INTR_RMV) self.gone_ = true;
  if (event == RTE_ETH_EVENT_INTR_RESET) self.started_ = false;
  self.news_ |= event == RTE_ETH_EVENT_INTR_RMV     ? kRemoved
                : event == RTE_ETH_EVENT_INTR_RESET ? kNeedsReset
                                                    : kLinkChanged;
  return 0;
}

void Device::on_removal(const char*, rte_dev_event_type event, void* device) {
  if (event == RTE_DEV_EVENT_REMOVE) on_event(0, RTE_ETH_EVENT_INTR_RMV, device, nullptr);
}

// ---- what becomes of it

void Device::look(Time now) {
  look_at_ = now + (spec_.bus == "pci" ? kLookAtNic : kLook);
  const unsigned news = news_.exchange(0);
  if (watch_) watch_->look(now);
  if ((news & kRemoved) != 0) {
    let_go();
    return_at_ = now + kReturn;
  } else if ((news & kNeedsReset) != 0) {
    reset();
  }
  if (is_gone() && now >= return_at_) {
    return_at_ = now + kReturn;
    if (has_let_go() && come_back()) gone_ = false;
  }
  if (spec_.bus != "pci") return;
  state_ = find_state();
  megabits_ = find_speed();
}

// Under VFIO the kernel waits for this before it removes the NIC. A driver may wait seconds for
// registers that are not there any more, so another thread closes the NIC. Until has_let_go() only
// that thread uses it.
void Device::let_go() {
  gone_ = true;
  if (closing_.valid()) return;
  try {
    if (spec_.bus == "pci" && port_ != RTE_MAX_ETHPORTS)
      closing_ = std::async(std::launch::async, [this] { shut(); });
  } catch (const std::system_error&) {  // no thread is to be had
  }
  if (!closing_.valid()) shut();
  has_let_go();
}

// False: not yet.
bool Device::has_let_go() {
  if (closing_.valid()) {
    if (closing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    closing_.get();
  }
  port_ = RTE_MAX_ETHPORTS;
  probed_ = promiscuous_ = false;
  started_ = false;
  owner_.reset();
  return true;
}

void Device::reset() {
  std::string failure;
  gate_.close();
  if (rte_eth_dev_reset(port_) == 0 && configure(failure) && take_mtu(failure) &&
      take_mac(failure) && start(failure)) {
    return;
  }
  let_go();
}

// Restores the address that its peers know.
bool Device::come_back() {
  spec_.mac = mac_;
  std::string failure;
  if ((spec_.bus != "pci" || claim_nic(failure)) && probe(failure) && configure(failure) &&
      take_mtu(failure) && take_mac(failure) && start(failure)) {
    watch_events();
    return true;
  }
  let_go();
  return false;
}

// ---- states

LinkState Device::state_of_socket() const {
  const InterfaceWatch& interface = socket_->interface();
  if (!socket_->runs() && !socket_->obstacle().empty()) return LinkState::kTaken;
  const LinkState state = interface.state();
  if (state != LinkState::kUp) return state;
  if (!socket_->runs()) return LinkState::kDown;  // about to be used again
  if (socket_->refused_length() != 0 || interface.facts().mtu < mtu_) return LinkState::kMtu;
  return socket_->address_changed() ? LinkState::kMac : LinkState::kUp;
}

LinkState Device::find_state() const {
  if (is_gone()) return LinkState::kGone;
  if (watch_ && watch_->state() != LinkState::kUp) return watch_->state();
  rte_eth_link link{};
  const bool up =
      started_ && rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  if (!up) return LinkState::kNoCarrier;
  return watch_ && watch_->facts().mtu < mtu_ ? LinkState::kMtu : LinkState::kUp;
}

unsigned Device::find_speed() const {
  rte_eth_link link{};
  const bool known = carries_frames(state_) && rte_eth_link_get_nowait(port_, &link) == 0 &&
                     link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
  return known ? link.link_speed : 0;
}

// ---- words

std::string Device::trouble() const {
  const std::string& name = spec_.interface.empty() ? spec_.name : spec_.interface;
  switch (state()) {
    case LinkState::kDown:
      return "interface " + name + " is down: ip link set " + name + " up";
    case LinkState::kGone:
      if (!spec_.interface.empty()) {
        return "interface " + name + " has gone: one of that name is taken up when it is there";
      }
      return "device " + name +
             " has been removed; it is taken up again when it is back and bound to its DPDK driver";
    case LinkState::kNoCarrier:
      return name + " has no carrier: check the cable, and that the other end is up";
    case LinkState::kNoPeer:
      return trouble_of_peer();
    case LinkState::kTaken:
      return socket_->obstacle();
    case LinkState::kMtu:
      return trouble_of_mtu();
    case LinkState::kMac:
      return "interface " + name +
             " has another MAC address than this link, which new peers find: give it back (ip link "
             "set " +
             name + " address " + to_string(mac_) + "), or restart this program";
    case LinkState::kUnknown:
    case LinkState::kUp:
    case LinkState::kDuplicate:
      break;
  }
  return {};
}

std::string Device::trouble_of_mtu() const {
  const std::string& name = spec_.interface;
  const unsigned now = interface()->facts().mtu;
  const std::string wanted = std::to_string(mtu_);
  if (now < mtu_) {
    return "interface " + name + " has MTU " + std::to_string(now) + " and this link " + wanted +
           ": longer frames do not leave; ip link set " + name + " mtu " + wanted +
           ", or restart this program";
  }
  const std::string payload = std::to_string(socket_->refused_length() - wire::kEthernetSize);
  return "frames with " + payload + " bytes or more do not leave: what interface " + name +
         " leads to has a smaller MTU; make it " + wanted +
         " at both ends and between (ip link set DEVICE mtu " + wanted +
         "), or open this link with mtu= of the smallest";
}

std::string Device::trouble_of_peer() const {
  const bool serves = spec_.memif->makes_socket;
  const std::string& why = memif_->memif().obstacle();
  return "no memif " + std::string(serves ? "client" : "server") + " has opened " +
         spec_.memif->socket +
         ": start the program whose link has role=" + (serves ? "client" : "server") +
         " there, with id=" + std::to_string(spec_.memif->id) +
         (serves ? "" : "; this side looks for it") + (why.empty() ? "" : " (" + why + ")");
}

}  // namespace stp::port
