// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/device.h"

#include <rte_dev.h>
#include <rte_errno.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "dpdk_port/dpdk/eal.h"
#include "dpdk_port/dpdk/failure.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_buffers.h"
#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/pci_nic.h"

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
  memif_->tend(now());  // shows from the start what is missing
  started_ = true;
  return true;
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

}  // namespace stp::port
