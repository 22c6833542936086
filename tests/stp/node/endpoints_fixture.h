// SPDX-License-Identifier: BSD-3-Clause
// A and B have a connectionless endpoint each. The test tells each what it must know of the other.
// Both have memory mapped for sending and for receiving.
#pragma once

#include "stp/wire/tiling.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Endpoints : public TwoNodes {
 protected:
  using TwoNodes::TwoNodes;

  static constexpr unsigned kBufsize = 12;
  static constexpr std::size_t kBuffers = 32;
  static constexpr std::uint32_t kSourceBufx = 40, kTargetBufx = 0x100;
  static constexpr MacAddr kStranger{{2, 0, 0, 0, 0, 9}};

  // One side: its objects, and what others must know to reach it.
  struct Party {
    EndpointId endpoint = kNoneId;
    Connection port;
    VcInfo name{};
    Buffers source{kBufsize, kBuffers}, target{kBufsize, kBuffers};
    RegionId source_region = kNoneId, target_region = kNoneId;
    std::uint16_t mx = 0;
  };
  Party pa, pb;

  void SetUp() override { start({}); }

  void start(EndpointConfig both) {
    both.bufsize = kBufsize;
    both.connectionless = true;
    open(a, pa, both);
    open(b, pb, both);
  }
  void open(Host& host, Party& party, const EndpointConfig& config, std::uint64_t owner = 0) {
    party.endpoint = host.open(config, owner);
    party.port.memory =
        std::make_unique<ChannelMemory>(ChannelGeometry{config.slots, config.credits});
    ASSERT_EQ(host.node.open_port(party.endpoint, party.port.memory->data(), 5, party.port.id, now),
              0);
    party.port.user = UserChannel(party.port.memory->data());
    ASSERT_EQ(host.node.vc_info(party.port.id, party.name), 0);
    party.source.fill_pattern();
    const auto from = party.source.all(), to = party.target.all();
    ASSERT_EQ(host.node.map(party.endpoint, Direction::kTransmit, kSourceBufx, {&from, 1},
                            party.source_region),
              0);
    ASSERT_EQ(host.node.map(party.endpoint, Direction::kReceive, kTargetBufx, {&to, 1},
                            party.target_region),
              0);
    ASSERT_EQ(host.node.alloc_mx(party.target_region, kNoneId, permit::kData, party.mx), 0);
  }

  // A request to the endpoint `to` at `mac`.
  static SendEntry addressed(const Party& to, const MacAddr& mac, wire::Op op,
                             std::uint16_t flags = 0) {
    auto entry = control(op, flags);
    entry.destination_mac = mac.to_u64();
    entry.header.d_port = to.name.local_port;
    entry.header.d_key = to.name.local_key;
    return entry;
  }
  SendEntry to_b(wire::Op op, std::uint16_t flags = 0) const {
    return addressed(pb, kMacB, op, flags);
  }
  // A Block of `length` bytes to `at` bytes into B's memory.
  SendEntry data(std::uint32_t b_num, std::size_t length, std::size_t at = 0,
                 std::uint16_t flags = 0) const {
    auto entry = to_b(wire::Op::kData, flags);
    const auto to = Address::from_linear((std::uint64_t{kTargetBufx} << kBufsize) + at, kBufsize);
    entry.header.mx = pb.mx;
    entry.header.bufx = to.bufx;
    entry.header.offset = to.offset;
    entry.header.b_num = b_num;
    entry.header.d_id = 3;
    entry.header.s_id = 0xbeef;
    entry.length = static_cast<std::uint32_t>(length);
    entry.bufx = kSourceBufx;
    return entry;
  }
  // An STU of a Block as its sender's Node would build it.
  wire::Header stu(std::uint32_t b_num, std::uint16_t number, std::size_t at,
                   std::uint16_t flags = 0) const {
    auto h = data(b_num, 0, at, flags).header;
    h.param = number;
    h.s_port = pa.name.local_port;
    return h;
  }
  void inject_stu(const wire::Header& h, std::size_t from, std::size_t length,
                  const MacAddr& source_mac = kMacA) {
    inject(b, source_mac, h, Bytes(pa.source.data() + from, length));
  }
  void send(const SendEntry& entry) {
    put(a, pa.port, entry);
    settle();
  }
  [[nodiscard]] bool arrived(std::size_t length, std::size_t at = 0, std::size_t from = 0) const {
    return std::memcmp(pb.target.data() + at, pa.source.data() + from, length) == 0;
  }
  [[nodiscard]] bool untouched(std::size_t from = 0) const {
    for (auto i = from; i < pb.target.size(); ++i)
      if (pb.target.data()[i] != std::byte{0}) return false;
    return true;
  }
};

}  // namespace stp::test
