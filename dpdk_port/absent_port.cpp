// SPDX-License-Identifier: BSD-3-Clause
// A link for which something is not there yet: an interface, an address, a folder. It drops what it
// is given to send, and says what is missing.
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <span>

#include "dpdk_port/link/arp.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link_port.h"

namespace stp::port {
namespace {

constexpr unsigned kUsualMtu = 1500;

class AbsentPort final : public LinkPort {
 public:
  AbsentPort(PortInfo info, const LinkConfig& config)
      : LinkPort(std::move(info)),
        config_(config),
        watch_(config.kind == LinkKind::kIface ? config.target : std::string()),
        never_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        room_(1, frame_room(info_.mtu)) {
    for (TxFrame& frame : frames_) frame.head = room_.at(0);
  }
  ~AbsentPort() override {
    if (never_ >= 0) ::close(never_);
  }

  unsigned turn(Engine& engine, Time now) override;
  std::optional<MacAddr> resolve(Ipv4 address, Time) override {
    return is_this_host(address, info_.address) ? std::optional(info_.mac) : std::nullopt;
  }
  [[nodiscard]] std::vector<PortCounter> counters() const override {
    return {{"tx_dropped", dropped_}};
  }
  [[nodiscard]] LinkState state() const override {
    const auto absence = missing();
    return absence ? absence->state : LinkState::kUnknown;
  }
  [[nodiscard]] std::string trouble() const override {
    const auto absence = missing();
    return absence ? absence->trouble
                   : "what it waited for has come: the link is about to be opened";
  }
  // A thread that sleeps on it looks as often as its timers want.
  [[nodiscard]] int wake_fd() const override { return never_; }

 private:
  // An interface is watched, because its state is asked for often.
  [[nodiscard]] std::optional<Absence> missing() const {
    if (config_.kind == LinkKind::kIface) return absence_of(config_.target, watch_.facts());
    return absence_of(config_);
  }

  const LinkConfig config_;
  InterfaceWatch watch_;
  const int never_;
  FrameBuffers room_;
  std::array<TxFrame, kBurst> frames_{};
  std::uint64_t dropped_ = 0;
};

unsigned AbsentPort::turn(Engine& engine, Time now) {
  watch_.look(now);
  if (now >= engine.next_deadline()) engine.expire(now);
  const std::size_t count = engine.transmit(frames_, now);
  for (const TxFrame& frame : std::span(frames_).first(count)) {
    if (frame.token.region != kNoneId) engine.transmitted(std::span(&frame.token, 1));
  }
  dropped_ += count;
  return static_cast<unsigned>(count);
}

}  // namespace

std::vector<std::unique_ptr<Port>> absent_link(const LinkConfig& config) {
  PortInfo info;
  info.link = config.text;
  info.device = config.target;
  info.driver = "none";
  info.mac = config.mac.value_or(MacAddr{});
  info.mtu = config.mtu.value_or(kUsualMtu);
  info.max_stu = max_stu_of(info.mtu);
  info.address = config.address;
  std::vector<std::unique_ptr<Port>> ports;
  ports.push_back(std::make_unique<AbsentPort>(std::move(info), config));
  return ports;
}

}  // namespace stp::port
