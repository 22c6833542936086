// SPDX-License-Identifier: BSD-3-Clause
// The link of this process alone: no driver, no privileges.
#include "dpdk_port/link/arp.h"
#include "dpdk_port/link_port.h"
#include "stp/base/assert.h"

namespace stp::port {
namespace {

constexpr unsigned kDefaultMtu = 9000;
constexpr MacAddr kDefaultMac{{0x02, 0, 0, 0, 0, 1}};

class LoopPort final : public LinkPort {
 public:
  LoopPort(PortInfo info, Stations fixed)
      : LinkPort(std::move(info)),
        fixed_(std::move(fixed)),
        heads_(kBurst, frame_room(info_.mtu)) {}

  unsigned turn(Engine& engine, Time now) override {
    unsigned moved = loopback_.deliver(engine, now);
    if (now >= engine.next_deadline()) engine.expire(now);
    for (std::size_t burst = 0; burst < kTurnBursts; ++burst) {
      const unsigned sent = send_burst(engine, now);
      if (sent == 0) break;
      moved += sent;
    }
    return moved;
  }

  std::optional<MacAddr> resolve(Ipv4 address, Time) override {
    if (is_this_host(address, info_.address)) return info_.mac;
    const auto known = fixed_.find(address);
    return known == fixed_.end() ? std::nullopt : std::optional(known->second);
  }

  [[nodiscard]] std::vector<PortCounter> counters() const override {
    return {{"looped", loopback_.total()}, {"tx_dropped", dropped_}};
  }

  [[nodiscard]] LinkState state() const override { return LinkState::kUp; }

 private:
  unsigned send_burst(Engine& engine, Time now) {
    std::array<TxFrame, kBurst> frames;
    for (std::size_t i = 0; i < kBurst; ++i) frames[i].head = heads_.at(i);
    const std::size_t count = engine.transmit(frames, now);
    STP_ASSERT(count <= frames.size(), "no more frames are taken than were offered a head");
    for (const TxFrame& frame : std::span(frames).first(count)) {
      const Bytes head(frame.head, frame.head_length);
      if (tap_ != nullptr) tap_->frame(head, frame.attached, true);
      if (destination(head) == info_.mac) {
        loopback_.push(frame);
        continue;
      }
      ++dropped_;
      if (frame.token.region != kNoneId) engine.transmitted(std::span(&frame.token, 1));
    }
    return static_cast<unsigned>(count);
  }

  const Stations fixed_;
  FrameBuffers heads_;
  std::uint64_t dropped_ = 0;  // to addresses that nobody has
};

}  // namespace

std::unique_ptr<LinkPort> open_loop_port(const LinkConfig& config, std::string&) {
  PortInfo info;
  info.link = config.text;
  info.device = "loop";
  info.driver = "loop";
  info.mac = config.mac.value_or(kDefaultMac);
  info.mtu = config.mtu.value_or(kDefaultMtu);
  info.max_stu = max_stu_of(info.mtu);
  info.attaches = !config.copy;
  info.address = config.address;
  return std::make_unique<LoopPort>(std::move(info), config.arp);
}

}  // namespace stp::port
