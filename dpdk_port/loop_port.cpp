// SPDX-License-Identifier: BSD-3-Clause
// The link within this process: no driver, no privileges. Its shards are equal, and pass each
// other's frames by rings.
#include "dpdk_port/link/arp.h"
#include "dpdk_port/link_port.h"
#include "stp/base/assert.h"

namespace stp::port {
namespace {

constexpr unsigned kDefaultMtu = 9000;
constexpr MacAddr kDefaultMac{{0x02, 0, 0, 0, 0, 1}};

class LoopPort final : public LinkPort {
 public:
  LoopPort(PortInfo info, Stations fixed, const std::shared_ptr<Crossing>& crossing)
      : LinkPort(std::move(info), crossing), fixed_(std::move(fixed)) {
    for (std::size_t i = 0; i < frames_.size(); ++i) frames_[i].head = loopback_.place(i);
  }

  unsigned turn(Engine& engine, Time now) override;

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
  [[nodiscard]] std::string steering() const override {
    return seat_ ? "no device: shards hand frames to each other" : "";
  }

 private:
  unsigned send_burst(Engine& engine, Time now);
  bool send(const TxFrame& frame);

  // Heads are built where those to ourselves wait to be received.
  std::array<TxFrame, Loopback::kCapacity> frames_;
  std::size_t looped_ = 0;  // in this turn
  const Stations fixed_;
  std::uint64_t dropped_ = 0;  // to unknown addresses
};

unsigned LoopPort::turn(Engine& engine, Time now) {
  unsigned moved = loopback_.deliver(engine, now);
  looped_ = 0;
  if (seat_) moved += seat_->deliver(engine, now);
  if (now >= engine.next_deadline()) engine.expire(now);
  for (std::size_t burst = 0; burst < kTurnBursts; ++burst) {
    if (seat_ && !seat_->may_send(now)) break;
    const unsigned sent = send_burst(engine, now);
    moved += sent;
    if (sent < kBurst) break;  // no more, or no more in this turn
  }
  return moved;
}

unsigned LoopPort::send_burst(Engine& engine, Time now) {
  const std::span burst = std::span(frames_).subspan(looped_, kBurst);
  const std::size_t count = engine.transmit(burst, now);
  STP_ASSERT(count <= burst.size(), "no more frames are taken than were offered a head");
  // A frame that is dropped leaves its place to the next one, whose head then moves.
  for (const TxFrame& frame : burst.first(count)) {
    const bool kept = send(frame);
    if (!kept && frame.token.region != kNoneId) engine.transmitted(std::span(&frame.token, 1));
  }
  if (seat_) seat_->publish();
  return static_cast<unsigned>(count);
}

// True: the frame refers to user memory until it is received here.
bool LoopPort::send(const TxFrame& frame) {
  const Bytes head(frame.head, frame.head_length);
  if (tap_ != nullptr) tap_->frame(head, frame.attached, true);
  if (destination(head) != info_.mac) {
    ++dropped_;
    return false;
  }
  const unsigned owner = seat_ ? seat_->owner_of(head) : info_.shard;
  if (owner != info_.shard) {
    seat_->give(owner, head, frame.attached, true);
    return false;
  }
  loopback_.push(frame);
  ++looped_;
  return true;
}

}  // namespace

LinkPorts open_loop_ports(const LinkConfig& config, unsigned shards) {
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
