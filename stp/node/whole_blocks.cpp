// SPDX-License-Identifier: BSD-3-Clause
// Fast path for the most common request: a Block of one STU, from contiguous memory, over a
// connection whose frames have neither tag nor Cksum. Makes once every check of request_checks.cpp
// that such a request can fail. Any other request takes the general path (frame_sender.cpp), which
// repeats all checks.
#include <cstring>

#include "stp/base/assert.h"
#include "stp/node/frame_sender.h"
#include "stp/wire/emit.h"

namespace stp {
namespace {

// Of a frame in Ethernet II.
constexpr std::size_t kHead = wire::kEthernetSize + wire::kHeaderSize;

// A word needs no call.
void copy_stu(Bytes stu, std::byte* to) {
  if (stu.size() == sizeof(std::uint64_t))
    std::memcpy(to, stu.data(), sizeof(std::uint64_t));
  else
    std::memcpy(to, stu.data(), stu.size());
}

}  // namespace

// Leaves telling the user to the caller. False: nothing has changed; the general path handles the
// oldest request of the queue, if any.
bool FrameSender::send_whole_block(Vc& vc, TxFrame& frame, Time now) {
  NodeChannel::Look request;
  if (!vc.channel.look(request)) return false;
  auto& common = use_.common;
  if (vc.connectionless() || vc.state != VcState::kOpen || vc.endpoint->config.checksum ||
      common.config.vlan || (vc.one_sided && vc.one_sided->next() != nullptr))
    return false;
  const auto& h = request.header;
  constexpr auto kIllegal = wire::flag::kReserved | wire::flag::kFunction;
  if (h.op() != wire::Op::kData || h.has(kIllegal) || request.payload_length != 0 ||
      h.offset >= std::uint64_t{1} << vc.peer_bufsize || vc.permitted.start_of(h.d_id, h.b_num))
    return false;
  // The STU ends with its tile, and no tile crosses a buffer: all of it has an address.
  // protocol: 8.2
  const std::size_t length = request.length;
  const auto size = std::uint64_t{1} << vc.send_stu_log2;
  if (wire::goes_as_snap(h, length) || length > size - (h.offset & (size - 1))) return false;
  // protocol: 6.2, 6.3
  const bool slot = !h.has(wire::flag::kSilent);
  if (slot && !vc.credit.available()) return false;
  RegionId region_id = kNoneId;
  const auto& source = vc.endpoint->transmit;
  if (request.offset >= std::uint64_t{1} << source.bufsize()) return false;
  const auto from = Address{request.bufx, request.offset}.linear(source.bufsize());
  const auto stu = source.run(from, length, region_id);
  if (stu.size() != length) return false;

  STP_ASSERT(!vc.sending.active, "one request of a connection is sent at a time");
  work::count("requests");
  if (slot) use_.states.spend(vc, now);
  if (h.has(wire::flag::kSendState)) vc.credit.asked(h.sync);
  const auto flags = (h.op_flags & wire::kFlagsMask & ~wire::flag::kAppend) | wire::flag::kLast;
  auto head = vc.addressed(h);
  head.op_flags = wire::op_flags(wire::Op::kData, static_cast<std::uint16_t>(flags));
  head.param = 0;
  wire::emit_unsummed(vc.peer_mac, common.config.mac, {}, head, length, frame.head);
  frame.for_stranger = false;
  if (length < common.config.attach_from) {
    copy_stu(stu, frame.head + kHead);
    frame.head_length = kHead + length;
    frame.attached = {};
    frame.token = {};
  } else {
    frame.head_length = kHead;
    frame.attached = stu;
    attach(vc, frame, region_id);
  }
  common.counters.add(Counter::kTxStus);
  common.counters.add(Counter::kTxDataBytes, length);
  common.counters.add(Counter::kTxFrames);
  common.counters.add(Counter::kTxBytes, kHead + length);
  vc.traffic.tx_data_bytes += length;
  vc.channel.skip();
  return true;
}

}  // namespace stp
