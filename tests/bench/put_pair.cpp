// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/put_pair.h"

namespace stp::bench {

using wire::Op;

// Frames arrive in the order of sending. Long STUs are attached, and copied once.
PutPair::PutPair()
    : TwoNodes(NodeConfig{.mac = {}, .max_stu = 13, .vlan = {}, .attach_from = 1024}) {
  connect({.bufsize = kBufsize}, {.bufsize = kBufsize});
  source_.fill_pattern();
  const auto from = source_.all(), to = target_.all();
  RegionId region = kNoneId;
  EXPECT_EQ(a.node.map(endpoint_a, Direction::kTransmit, 0, {&from, 1}, region), 0);
  EXPECT_EQ(b.node.map(listener, Direction::kReceive, 0, {&to, 1}, region), 0);
  EXPECT_EQ(b.node.alloc_mx(region, kNoneId, permit::kData, mx_), 0);
  auto mra = control(Op::kMemoryRegionAvailable);
  mra.header.param = 1;
  mra.header.mx = mx_;
  mra.header.set_t_len(target_.size());
  mra.header.s_id = kRegion;
  TwoNodes::put(b, cb, mra);
  settle();

  request_ = control(Op::kData, wire::flag::kSilent);
  request_.header.mx = mx_;
  request_.header.d_id = kRegion;
  const auto room = a.node.frame_room();
  heads_.resize(room * kBurst);
  for (std::size_t i = 0; i < kBurst; ++i) frames_[i].head = heads_.data() + i * room;
}

// Filled in where it stays, as libst does.
void PutPair::request(std::uint32_t length) {
  auto& entry = *ca.user.next();
  write_entry(request_, entry);
  entry.header.b_num = b_num_++;
  entry.header.bufx = entry.bufx = next_buffer_;
  entry.length = length;
  ca.user.send_next();
  a.node.kick(ca.id);
}

void PutPair::put(std::uint32_t length) {
  request(length);
  move_frames();
}

std::uint32_t PutPair::put_burst(std::uint32_t length) {
  constexpr std::size_t kNear = 64 * 1024;  // bytes of frames that stay in the nearest caches
  const auto buffers = std::max(length >> kBufsize, 1U);
  const auto count =
      static_cast<std::uint32_t>(std::clamp<std::size_t>(kNear / std::max(length, 1U), 1, kBurst));
  for (std::uint32_t i = 0; i < count; ++i) {
    request(length);
    next_buffer_ = (next_buffer_ + buffers) % kBuffers;
  }
  move_frames();
  return count;
}

void PutPair::send(std::uint32_t length) {
  request(length);
  while (const auto count = a.node.transmit(frames_, now)) let_go(count);
}

void PutPair::move_frames() {
  while (const auto count = a.node.transmit(frames_, now)) {
    for (std::size_t i = 0; i < count; ++i) {
      burst_[i].head = {frames_[i].head, frames_[i].head_length};
      burst_[i].attached = frames_[i].attached;
    }
    b.node.receive_looped({burst_.data(), count}, now);
    let_go(count);
  }
}

void PutPair::let_go(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (frames_[i].token.region != kNoneId) a.node.transmitted(frames_[i].token);
}

}  // namespace stp::bench
