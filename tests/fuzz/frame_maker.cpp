// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/frame_maker.h"

#include <algorithm>

#include "stp/wire/operations.h"

namespace stp::fuzz {
namespace {

using wire::Header;
using wire::Op;
namespace flag = wire::flag;

constexpr auto kUnknownOp = static_cast<Op>(0x0a);
constexpr unsigned kMaxStu = 16;
constexpr unsigned kFields = 8;

std::uint32_t field(const Header& h, unsigned which) {
  switch (which % kFields) {
    case 0:
      return h.param;
    case 1:
      return h.mx;
    case 2:
      return h.bufx;
    case 3:
      return h.offset;
    case 4:
      return h.sync;
    case 5:
      return h.b_num;
    case 6:
      return h.d_id;
    default:
      return h.s_id;
  }
}

void set_field(Header& h, unsigned which, std::uint32_t value) {
  switch (which % kFields) {
    case 0:
      h.param = static_cast<std::uint16_t>(value);
      return;
    case 1:
      h.mx = static_cast<std::uint16_t>(value);
      return;
    case 2:
      h.bufx = value;
      return;
    case 3:
      h.offset = value;
      return;
    case 4:
      h.sync = value;
      return;
    case 5:
      h.b_num = value;
      return;
    case 6:
      h.d_id = value;
      return;
    default:
      h.s_id = value;
  }
}

// Bytes for behind the header, of a length that is right or nearly right for the operation.
std::vector<std::byte> body(ByteCode& code, Op op) {
  static constexpr std::array<std::size_t, 8> kStus{0, 8, 1, 256, 1024, 512, 1025, 100};
  std::vector<std::byte> bytes;
  if (op == Op::kData) {
    bytes.assign(code.chance(200) ? kStus[code.below(kStus.size())] : code.u16() % 1100U,
                 std::byte{0x5a});
  } else if (const auto option = some_option(code)) {
    bytes.assign(option->begin(), option->end());
  }
  return bytes;
}

}  // namespace

OptionPayload some_option(ByteCode& code) {
  if (!code.chance(96)) return {};
  OptionPayload option{std::in_place};
  option->fill(std::byte{0});
  std::ranges::copy(code.take(option->size()), option->begin());
  return option;
}

void flip_flags(ByteCode& code, Header& h) {
  h.op_flags = static_cast<std::uint16_t>(h.op_flags ^ (code.u16() & wire::kFlagsMask));
}

std::vector<VcId> connections_of(const Node& node) {
  std::vector<VcId> ids;
  VcInfo info{};
  for (auto vc = node.vc_after(0); vc != kNoneId; vc = node.vc_after(info.local_port)) {
    ids.push_back(vc);
    if (node.vc_info(vc, info) != 0) break;
  }
  return ids;
}

Header natural_answer(const Header& seen, std::uint32_t id) {
  Header h;
  const auto op = [&](Op is) { h.op_flags = wire::op_flags(is); };
  h.d_id = seen.s_id;
  h.s_id = id;
  switch (seen.op()) {
    case Op::kRequestToSend:
      op(Op::kClearToSend);
      h.param = static_cast<std::uint16_t>(std::min<unsigned>(seen.mx, 10));
      h.mx = 1;
      break;
    case Op::kRequestToReceive:
      op(Op::kRequestToSend);
      h.param = 2;
      h.mx = 10;
      h.set_t_len(seen.t_len());
      break;
    case Op::kRequestMemoryRegion:
      op(Op::kMemoryRegionAvailable);
      h.param = seen.param;
      h.mx = 1;
      h.set_t_len(seen.t_len());
      break;
    case Op::kClearToSend:
    case Op::kMemoryRegionAvailable:
      h = seen;
      h.op_flags = wire::op_flags(Op::kData, flag::kLast);
      h.param = 0;
      h.d_id = seen.s_id;
      if (seen.op() == Op::kMemoryRegionAvailable) h.b_num = 0;
      break;
    case Op::kGet:
      op(Op::kData);
      h.op_flags |= flag::kLast;
      h.mx = seen.mx;
      h.bufx = seen.sync;
      h.offset = seen.b_num;
      h.b_num = seen.s_id;
      h.d_id = seen.d_id;
      break;
    case Op::kData:
    case Op::kRequestState:
      op(Op::kRequestStateResponse);
      h.param = 8;
      h.sync = seen.sync;
      h.offset = seen.b_num + 1;
      h.b_num = seen.b_num;
      h.s_id = seen.d_id;
      h.d_id = seen.op() == Op::kData ? id : seen.s_id;
      break;
    case Op::kEnd:
      op(Op::kEndAck);
      h.s_id = seen.d_id;
      break;
    default:
      op(Op::kNoOperation);
  }
  return h;
}

void FrameMaker::learn(const Frame& frame) {
  wire::Frame parsed;
  if (wire::parse(frame, kMaxStu, parsed) != DropReason::kNone) return;
  if (patterns_.size() < kPatterns)
    patterns_.push_back(parsed.header);
  else
    patterns_[next_++ % kPatterns] = parsed.header;
}

std::uint32_t FrameMaker::value(ByteCode& code, unsigned which) const {
  if (patterns_.empty() || code.chance(128)) return code.number();
  const auto& pattern = patterns_[code.below(kPatterns) % patterns_.size()];
  return field(pattern, code.chance(160) ? which : code.u8()) + (code.chance(32) ? 1U : 0U);
}

void FrameMaker::change(ByteCode& code, Header& h) const {
  const auto which = code.below(kFields + 1);
  if (which == kFields)
    flip_flags(code, h);
  else
    set_field(h, which, value(code, which));
}

Header FrameMaker::header(ByteCode& code) {
  Header h;
  if (!patterns_.empty() && !code.chance(32)) {
    const auto& pattern = patterns_[code.below(kPatterns) % patterns_.size()];
    h = code.chance(128) ? natural_answer(pattern, code.below(16)) : pattern;
  }
  if (const auto op = code.u8() / 4U; op <= wire::kOperations.size())
    h.op_flags = wire::op_flags(op < wire::kOperations.size() ? wire::kOperations[op] : kUnknownOp,
                                h.op_flags);
  for (auto changes = code.below(4); changes > 0; --changes) change(code, h);
  return h;
}

FrameMaker::Frame FrameMaker::make(ByteCode& code, const test::Host& to) {
  auto h = header(code);
  wire::Envelope envelope{to.config.mac, kStranger, {}, code.chance(64)};
  const auto vcs = connections_of(to.node);
  VcInfo info{};
  if (!vcs.empty() && to.node.vc_info(vcs[code.u8() % vcs.size()], info) == 0) {
    h.d_port = info.local_port;
    h.d_key = info.local_key;
    h.s_port = info.remote_port;
    // A connectionless endpoint accepts frames from any station.
    if (!info.peer_mac.is_zero()) envelope.src = info.peer_mac;
    if (h.s_port == 0) h.s_port = 1;
  }
  if (const auto lie = code.u8(); lie >= 192) {
    if (lie % 5 == 0) envelope.src = kStranger;
    if (lie % 5 == 1) ++h.d_key;
    if (lie % 5 == 2) h.d_port = static_cast<std::uint16_t>(code.number());
    if (lie % 5 == 3) h.s_port = static_cast<std::uint16_t>(code.number());
    if (lie % 5 == 4) envelope.vlan = 5;
  }
  const auto payload = body(code, h.op());
  const std::vector<std::byte> append(h.op() == Op::kData && h.has(flag::kAppend) ? 64 : 0,
                                      std::byte{0x77});
  Frame frame(wire::kMaxHeadSize + payload.size() + append.size() + wire::kMinPayload);
  frame.resize(wire::emit(envelope, h, payload, append, frame));
  if (code.chance(8)) frame.resize(frame.size() - std::min<std::size_t>(code.u8(), frame.size()));
  return frame;
}

FrameMaker::Frame FrameMaker::changed(ByteCode& code, const Frame& frame) {
  wire::Frame parsed;
  if (wire::parse(frame, kMaxStu, parsed) != DropReason::kNone) return frame;
  auto h = parsed.header;
  const auto which = code.below(kFields + 1);
  if (which == kFields)
    flip_flags(code, h);
  else
    set_field(h, which, field(h, which) ^ code.number());
  const auto& payload = h.op() == Op::kData ? parsed.stu : parsed.option;
  Frame out(frame.size() + wire::kMaxHeadSize + wire::kMinPayload);
  out.resize(
      wire::emit({parsed.dst, parsed.src, parsed.vlan, false}, h, payload, parsed.append, out));
  return out;
}

}  // namespace stp::fuzz
