// SPDX-License-Identifier: BSD-3-Clause
// A sends to B at level 0: RTS, CTS, DATA, with memory mapped on both sides.
#pragma once

#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Writing : public TwoNodes {
 protected:
  using TwoNodes::TwoNodes;

  static constexpr unsigned kBufsize = 12;
  static constexpr std::size_t kBuffers = 32;
  static constexpr std::uint32_t kSourceBufx = 40, kTargetBufx = 0x100;
  static constexpr std::uint32_t kIId = 7, kRId = 9;
  static constexpr unsigned kBlocksize = 16;
  static constexpr std::uint32_t kStu = 1U << kBufsize;

  Buffers source{kBufsize, kBuffers}, target{kBufsize, kBuffers};
  RegionId source_region = kNoneId, target_region = kNoneId;
  std::uint16_t mx = 0;

  void SetUp() override { start({}); }

  void start(EndpointConfig both) {
    both.bufsize = kBufsize;
    connect(both, both);
    source.fill_pattern();
    const auto from = source.all(), to = target.all();
    ASSERT_EQ(a.node.map(endpoint_a, Direction::kTransmit, kSourceBufx, {&from, 1}, source_region),
              0);
    ASSERT_EQ(b.node.map(listener, Direction::kReceive, kTargetBufx, {&to, 1}, target_region), 0);
    ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, mx), 0);
  }

  SendEntry rts(std::uint64_t length) {
    auto e = control(wire::Op::kRequestToSend);
    e.header.param = 1;
    e.header.mx = kBlocksize;
    e.header.set_t_len(length);
    e.header.d_id = wire::kNoId;
    e.header.s_id = kIId;
    return e;
  }
  SendEntry cts(std::uint32_t b_num = 0, std::uint32_t bufx = kTargetBufx, std::uint32_t offset = 0,
                unsigned blocksize = kBlocksize) {
    auto e = control(wire::Op::kClearToSend);
    e.header.param = static_cast<std::uint16_t>(blocksize);
    e.header.mx = mx;
    e.header.bufx = bufx;
    e.header.offset = offset;
    e.header.b_num = b_num;
    e.header.d_id = kIId;
    e.header.s_id = kRId;
    return e;
  }
  // The Block that a CTS permits, `length` bytes from the start of the source buffers.
  SendEntry data(const wire::Header& permission, std::size_t length, std::uint16_t flags = 0) {
    auto e = control(wire::Op::kData, flags);
    e.header.mx = permission.mx;
    e.header.bufx = permission.bufx;
    e.header.offset = permission.offset;
    e.header.b_num = permission.b_num;
    e.header.sync = 1;
    e.header.d_id = permission.s_id;
    e.header.s_id = 0xbeef;
    e.length = static_cast<std::uint32_t>(length);
    e.bufx = kSourceBufx;
    return e;
  }
  // RTS and CTS, so that A may send `length` bytes. Returns the CTS that A got.
  wire::Header grant(std::uint64_t length) {
    put(a, ca, rts(length));
    settle();
    EXPECT_EQ(get(cb)->header.op(), wire::Op::kRequestToSend);
    put(b, cb, cts());
    settle();
    const auto got = get(ca);
    EXPECT_TRUE(got && got->header.op() == wire::Op::kClearToSend);
    return got ? got->header : wire::Header{};
  }
  [[nodiscard]] bool arrived(std::size_t length, std::size_t at = 0) const {
    return std::memcmp(target.data() + at, source.data(), length) == 0;
  }
  [[nodiscard]] bool untouched(std::size_t from = 0) const {
    for (auto i = from; i < target.size(); ++i)
      if (target.data()[i] != std::byte{0}) return false;
    return true;
  }
  // A DATA header as A's peer would accept it, for frames built by hand.
  wire::Header stu(const wire::Header& permission, std::uint16_t number, std::uint32_t offset,
                   std::uint16_t flags = 0) {
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(cb.id, info), 0);
    wire::Header h;
    h.op_flags = wire::op_flags(wire::Op::kData, flags);
    h.param = number;
    h.d_port = info.local_port;
    h.s_port = info.remote_port;
    h.d_key = info.local_key;
    h.mx = permission.mx;
    h.bufx = permission.bufx + offset / (1U << kBufsize);
    h.offset = permission.offset + offset % (1U << kBufsize);
    h.b_num = permission.b_num;
    h.d_id = permission.s_id;
    return h;
  }
  void inject_stu(const wire::Header& h, std::size_t from, std::size_t length) {
    inject(b, kMacA, h, Bytes(source.data() + from, length));
  }
  // The STU is dropped for exactly this reason, and not a byte of memory changes.
  void expect_dropped(const wire::Header& h, Counter why, std::size_t length = kStu) {
    const auto before = b.count(why);
    inject_stu(h, 0, length);
    EXPECT_EQ(b.count(why), before + 1) << Counters::name(why);
    EXPECT_TRUE(untouched()) << Counters::name(why);
  }
};

}  // namespace stp::test
