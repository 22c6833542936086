// SPDX-License-Identifier: BSD-3-Clause
// The link within this process: no driver, no privileges.
#include "dpdk_port/link/arp.h"
#include "dpdk_port/soft_port.h"

namespace stp::port {
namespace {

constexpr unsigned kDefaultMtu = 9000;
constexpr MacAddr kDefaultMac{{0x02, 0, 0, 0, 0, 1}};

class LoopPort final : public SoftPort {
 public:
  LoopPort(PortInfo info, Stations fixed, const std::shared_ptr<Crossing>& crossing)
      : SoftPort(std::move(info), crossing), fixed_(std::move(fixed)) {}

  std::optional<MacAddr> resolve(Ipv4 address, Time) override {
    if (is_this_host(address, info_.address)) return info_.mac;
    const auto known = fixed_.find(address);
    return known == fixed_.end() ? std::nullopt : std::optional(known->second);
  }

  [[nodiscard]] std::vector<PortCounter> counters() const override {
    std::vector<PortCounter> all{{"looped", loopback_.total()}, {"tx_dropped", dropped_}};
    add_seat_counters(all);
    return all;
  }

  [[nodiscard]] LinkState state() const override { return LinkState::kUp; }

 private:
  void send_away(const TxFrame&) override { ++dropped_; }

  const Stations fixed_;
  std::uint64_t dropped_ = 0;  // to unknown addresses
};

}  // namespace

LinkPorts open_loop_ports(const LinkConfig& config, unsigned shards, std::string&) {
  PortInfo info;
  info.link = config.text;
  info.device = "loop";
  info.driver = "loop";
  info.mac = config.mac.value_or(kDefaultMac);
  info.mtu = config.mtu.value_or(kDefaultMtu);
  info.max_stu = max_stu_of(info.mtu);
  info.attaches = !config.copy;
  info.address = config.address;
  const auto crossing =
      shards > 1 ? std::make_shared<Crossing>(shards, frame_room(info.mtu)) : nullptr;
  LinkPorts ports;
  for (info.shard = 0; info.shard < shards; ++info.shard) {
    ports.push_back(std::make_unique<LoopPort>(info, config.arp, crossing));
  }
  return ports;
}

}  // namespace stp::port
