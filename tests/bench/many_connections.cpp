// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/many_connections.h"

#include <stdexcept>

#include "stp/wire/big_endian.h"

namespace stp::bench {
namespace {

using wire::Op;

constexpr std::uint32_t kUPort = 3000;

}  // namespace

ManyConnections::ManyConnections(std::size_t count)
    : channels_(0, channel_size_ * count),
      host_(kMac, 1, NodeConfig{.mac = {}, .max_stu = 13, .vlan = {}}),
      endpoint_(host_.open(config_)) {
  auto& node = host_.node;
  const auto piece = memory_.all();
  RegionId region = kNoneId;
  if (node.listen(endpoint_, kUPort) != 0 ||
      node.map(endpoint_, Direction::kReceive, 0, {&piece, 1}, region) != 0 ||
      node.alloc_mx(region, kNoneId, permit::kAll, mx_) != 0)
    throw std::runtime_error("the Node refuses its set-up");
  ids_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) connect(i);
}

// The peer's Port and Key are both i + 1.
void ManyConnections::connect(std::size_t i) {
  auto& node = host_.node;
  node.stock(endpoint_, channels_.data() + i * channel_size_, i);
  wire::Header rc;
  rc.op_flags = wire::op_flags(Op::kRequestConnection);
  rc.param = 64;
  rc.s_port = static_cast<std::uint16_t>(i + 1);
  rc.bufx = kBufsize;
  rc.offset = static_cast<std::uint32_t>(i + 1);
  rc.sync = 13;
  rc.d_id = kUPort;
  Frame frame(wire::kMaxHeadSize + wire::kMinPayload);
  frame.resize(wire::emit({kMac, kPeer, {}, false}, rc, {}, {}, frame));
  const Bytes bytes(frame);
  node.receive({&bytes, 1}, now_);
  discard_frames();
  VcId id = kNoneId;
  if (node.accept(endpoint_, id) != 0) throw std::runtime_error("connection refused");
  prove(id);
  ids_.push_back(id);
}

// The peer shows that the answer has reached it.
void ManyConnections::prove(VcId id) {
  auto& node = host_.node;
  VcInfo info{};
  if (node.vc_info(id, info) != 0) throw std::runtime_error("no such connection");
  wire::Header rs;
  rs.op_flags = wire::op_flags(wire::Op::kRequestState);
  rs.d_port = info.local_port;
  rs.d_key = info.local_key;
  rs.s_port = info.remote_port;
  rs.b_num = rs.d_id = wire::kNoId;
  Frame frame(wire::kMaxHeadSize + wire::kMinPayload);
  frame.resize(wire::emit({kMac, kPeer, {}, false}, rs, {}, {}, frame));
  const Bytes bytes(frame);
  node.receive({&bytes, 1}, now_);
  discard_frames();
}

void ManyConnections::discard_frames() {
  auto& node = host_.node;
  Frame head(node.frame_room());
  TxFrame frame{.head = head.data(), .attached = {}, .token = {}};
  while (node.transmit({&frame, 1}, now_) != 0) node.transmitted(frame.token);
  for (Event event{}; node.next_event(event);) {
  }
}

void ManyConnections::open_region(std::size_t i) {
  SendEntry mra{};
  mra.header.op_flags = wire::op_flags(Op::kMemoryRegionAvailable);
  mra.header.param = 1;
  mra.header.mx = mx_;
  mra.header.set_t_len(std::size_t{1} << kBufsize);
  mra.header.s_id = kRegion;
  user(i).send(mra);
  host_.node.kick(ids_[i]);
  discard_frames();
}

ManyConnections::Frame ManyConnections::put(std::size_t i, std::uint32_t b_num,
                                            std::size_t length) {
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kData, wire::flag::kLast | wire::flag::kSilent);
  h.mx = mx_;
  h.b_num = b_num;
  h.d_id = kRegion;
  return frame(i, h, std::vector<std::byte>(length));
}

void ManyConnections::set_b_num(Frame& frame, std::uint32_t b_num) {
  wire::store32(frame.data() + wire::kEthernetSize + wire::at::kBNum, b_num);
}

ManyConnections::Frame ManyConnections::no_operation(std::size_t i) {
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kNoOperation);
  return frame(i, h, {});
}

ManyConnections::Frame ManyConnections::frame(std::size_t i, wire::Header h, Bytes payload) {
  VcInfo info{};
  host_.node.vc_info(ids_[i], info);
  h.d_port = info.local_port;
  h.s_port = info.remote_port;
  h.d_key = info.local_key;
  Frame bytes(wire::kMaxHeadSize + wire::kMinPayload + payload.size());
  bytes.resize(wire::emit({kMac, kPeer, {}, false}, h, payload, {}, bytes));
  return bytes;
}

UserChannel ManyConnections::user(std::size_t i) const {
  return UserChannel(channels_.data() + i * channel_size_);
}

}  // namespace stp::bench
