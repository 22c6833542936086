// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/bare_link.h"

#include <cstring>

#include "dpdk_port/dpdk/device.h"
#include "dpdk_port/link/engine.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

// IEEE 802's EtherType for local experiments.
constexpr std::uint16_t kEtherType = 0x88b5;
constexpr std::size_t kMacSize = 6, kTypeAt = 12, kBodyAt = 14, kBodySize = 20;
static_assert(kBodySize <= BareFrame::kSmallest);

class EthdevBareLink final : public BareLink {
 public:
  explicit EthdevBareLink(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  unsigned send(const BareFrame& frame, unsigned count) override {
    std::array<rte_mbuf*, kBurst> mbufs;
    if (rte_pktmbuf_alloc_bulk(share().pool(), mbufs.data(), count) != 0) return 0;
    const auto length = static_cast<std::uint16_t>(wire::kEthernetSize + frame.payload);
    for (unsigned i = 0; i < count; ++i) {
      write(frame, rte_pktmbuf_mtod(mbufs[i], std::byte*));
      mbufs[i]->data_len = length;
      mbufs[i]->pkt_len = length;
    }
    const auto sent = share().send(mbufs.data(), static_cast<std::uint16_t>(count));
    const unsigned gone = share().returns_mbufs() ? 0 : sent;
    rte_pktmbuf_free_bulk(mbufs.data() + gone, count - gone);
    return sent;
  }

  std::span<const BareFrame> receive() override {
    std::array<rte_mbuf*, kBurst> mbufs;
    if (calls_++ % kCallsPerLook == 0) device_->tend(now());
    const auto count = share().receive(mbufs.data(), nullptr, kBurst);
    std::size_t kept = 0;
    for (unsigned i = 0; i < count; ++i)
      if (read(mbufs[i], frames_[kept])) ++kept;
    share().release(mbufs.data(), count);
    return std::span(frames_).first(kept);
  }

  [[nodiscard]] unsigned mtu() const override { return device_->mtu(); }

 private:
  [[nodiscard]] DeviceShare& share() const { return device_->share(DeviceShare::kOwner); }
  void write(const BareFrame& frame, std::byte* to) const {
    std::memcpy(to, frame.peer.octets.data(), kMacSize);
    std::memcpy(to + kMacSize, device_->mac().octets.data(), kMacSize);
    wire::store16(to + kTypeAt, kEtherType);
    wire::store32(to + kBodyAt, frame.kind);
    std::memcpy(to + kBodyAt + 4, &frame.number, sizeof frame.number);
    std::memcpy(to + kBodyAt + 12, &frame.value, sizeof frame.value);
  }
  static bool read(const rte_mbuf* mbuf, BareFrame& out) {
    const auto* const from = rte_pktmbuf_mtod(mbuf, const std::byte*);
    if (mbuf->data_len < kBodyAt + kBodySize || wire::load16(from + kTypeAt) != kEtherType)
      return false;
    std::memcpy(out.peer.octets.data(), from + kMacSize, kMacSize);
    out.kind = wire::load32(from + kBodyAt);
    std::memcpy(&out.number, from + kBodyAt + 4, sizeof out.number);
    std::memcpy(&out.value, from + kBodyAt + 12, sizeof out.value);
    out.payload = mbuf->pkt_len - wire::kEthernetSize;
    return true;
  }

  // The work that a dedicated program would also do in its loop.
  static constexpr unsigned kCallsPerLook = 256;

  std::unique_ptr<Device> device_;
  unsigned calls_ = 0;
  std::array<BareFrame, kBurst> frames_;
};

}  // namespace

std::unique_ptr<BareLink> BareLink::open(const LinkConfig& config, std::string& error) {
  DeviceSpec spec;
  if (!make_device_spec(config, 0, spec, error)) {
    error = "link '" + config.text + "': " + error;
    return nullptr;
  }
  auto device = Device::open(spec, error);
  if (!device) {
    error = "link '" + config.text + "': " + error;
    return nullptr;
  }
  return std::make_unique<EthdevBareLink>(std::move(device));
}

}  // namespace stp::port
