// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/device_plan.h"

#include <algorithm>
#include <bit>

#include "stp/node/shards.h"

namespace stp::port {
namespace {

constexpr std::size_t kKiB = 1024;
// Drivers add their own header (virtio: 12 bytes), a checksum or a second VLAN tag to a frame.
constexpr std::size_t kDriversOwn = 32;
constexpr std::size_t kLeastRoom = 2048;
// A buffer's length has 16 bits and includes DPDK's headroom of 128 bytes.
constexpr std::size_t kMostRoom = 65'535 - 128;
// Memory of an mbuf beside its room.
constexpr std::size_t kMbufHeads = 448;

std::size_t room_of(const DeviceSpec& spec, const DeviceFacts& facts) {
  const std::size_t frame = spec.data_room;
  // A memif's buffers belong to the program at the other end.
  if (spec.memif || facts.driver == "net_memif") return frame;
  // An mbuf is a chunk of the kernel's ring: at least 2048 bytes, at most a page.
  if (facts.driver == "net_af_xdp") return std::max(frame, kLeastRoom);
  const std::size_t least = std::max({frame + kDriversOwn, facts.least_room, kLeastRoom});
  // Its device accepts only powers of two and rounds down.
  const std::size_t suits =
      facts.driver == "net_e1000_em" ? std::bit_ceil(least) : (least + kKiB - 1) / kKiB * kKiB;
  return std::min(suits, std::max(kMostRoom, frame));
}

// Both ends of these are software, and a queue of one end leads to the same queue of the other.
bool is_peers_choice(const std::string& driver) {
  return driver == "net_vhost" || driver == "net_virtio_user" || driver == "net_memif";
}

// A peer may have several shards, and each of ours then needs a queue to each of them: all queues
// that such a device was made with are used (queue_share.h), by one shard as well. A NIC has one
// for each shard.
unsigned queues_of(const DeviceSpec& spec, const DeviceFacts& facts, unsigned most) {
  const bool all = facts.driver == "net_vhost" || facts.driver == "net_virtio_user";
  return std::clamp(most, 1U, all ? spec.shards * Shards::kMost : spec.shards);
}

}  // namespace

DevicePlan plan_device(const DeviceSpec& spec, const DeviceFacts& facts) {
  // Some devices (virtio) admit no VLAN until told; others admit all, and a filter saves them work.
  DevicePlan plan{.room = room_of(spec, facts),
                  .tell_vlan = spec.vlan && facts.filters_vlans,
                  .receive_queues = queues_of(spec, facts, facts.most_receive_queues),
                  .send_queues = queues_of(spec, facts, facts.most_send_queues)};
  if (plan.receive_queues == 1) return plan;
  plan.steering = is_peers_choice(facts.driver) ? Steering::kPeer : Steering::kRules;
  return plan;
}

unsigned pinned_megabytes(const DeviceSpec& spec) {
  constexpr std::size_t kForDpdk = 32, kLinks = 4;
  const std::size_t mbuf = kMbufHeads + room_of(spec, {});
  const std::size_t link = spec.shards * mbuf * (2 * kDescriptors + kSpareMbufs);
  return static_cast<unsigned>(kForDpdk + kLinks * (link / (kKiB * kKiB) + 1));
}

}  // namespace stp::port
