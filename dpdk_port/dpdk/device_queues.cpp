// SPDX-License-Identifier: BSD-3-Clause
// The queues of a device, the mbufs of each shard, and what brings frames to the shards.
#include <rte_errno.h>

#include "dpdk_port/dpdk/device.h"
#include "dpdk_port/dpdk/eal.h"
#include "dpdk_port/dpdk/failure.h"
#include "dpdk_port/dpdk/flow_steering.h"
#include "dpdk_port/link/engine.h"

namespace stp::port {
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

}  // namespace stp::port
