// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/user_request.h"

#include <cstring>

#include "tests/fuzz/frame_maker.h"

namespace stp::fuzz {
namespace {

using wire::Header;
using wire::Op;
namespace flag = wire::flag;

constexpr std::uint32_t kIds = 4;  // few, so that requests use the same ids

void point_at(Header& h, const Address& at) {
  h.bufx = at.bufx;
  h.offset = at.offset;
}

// A place for `length` bytes of the granted middle.
std::uint64_t place(ByteCode& code, std::uint64_t length) {
  return std::uint64_t{code.u8()} * 40 % (Estate::kGrantedBytes - length + 1);
}

Header clear_to_send(ByteCode& code, const Estate& estate) {
  Header h;
  h.op_flags = wire::op_flags(Op::kClearToSend);
  h.param = static_cast<std::uint16_t>(8 + code.below(6));
  h.mx = estate.mx();
  point_at(h, Estate::granted(place(code, std::uint64_t{1} << h.param)));
  h.b_num = code.below(4);
  h.d_id = code.below(kIds);
  h.s_id = code.below(kIds);
  return h;
}

Header region(ByteCode& code, const Estate& estate) {
  Header h;
  h.op_flags = wire::op_flags(Op::kMemoryRegionAvailable);
  const auto length = 8 + std::uint64_t{code.u8()} * 32;
  h.param = static_cast<std::uint16_t>(code.below(5));
  h.mx = estate.mx();
  point_at(h, Estate::granted(place(code, length) & ~std::uint64_t{7}));
  h.set_t_len(length);
  h.d_id = code.below(kIds);
  h.s_id = code.below(kIds);
  return h;
}

// Get or FetchOp of what a peer may have opened.
Header get(ByteCode& code, const Estate& estate) {
  Header h;
  const auto function = code.below(8);
  h.op_flags =
      wire::op_flags(Op::kGet, static_cast<std::uint16_t>(function << wire::kFunctionShift));
  h.param = static_cast<std::uint16_t>(function == 0 ? 1 + code.u16() % 4096 : 8);
  h.mx = estate.mx();
  point_at(h, Estate::granted(std::uint64_t{code.u8()} * 8));
  const auto landing = Estate::granted(place(code, 4096) & ~std::uint64_t{7});
  h.sync = landing.bufx;
  h.b_num = landing.offset;
  h.d_id = code.below(kIds);
  h.s_id = code.below(kIds);
  return h;
}

SendEntry data(ByteCode& code, const Estate& estate) {
  SendEntry e{};
  constexpr unsigned kLegal = wire::kFlagsMask & ~(flag::kFunction | flag::kReserved);
  e.header.op_flags = wire::op_flags(Op::kData, static_cast<std::uint16_t>(code.u16() & kLegal));
  e.header.mx = estate.mx();
  point_at(e.header, Estate::granted(place(code, 0)));
  e.header.sync = code.u8();
  e.header.b_num = code.below(4);
  e.header.d_id = code.below(kIds);
  const auto from = Estate::source(std::uint64_t{code.u8()} * 16);
  e.bufx = from.bufx;
  e.offset = from.offset;
  e.length = code.u16() % 8192;
  if (code.chance(32)) e.payload_length = wire::kAppendSize;
  return e;
}

Header simple(ByteCode& code) {
  static constexpr std::array kOps{
      Op::kNoOperation,  Op::kRequestToSend, Op::kRequestAnswer, Op::kRequestToReceive,
      Op::kRequestState, Op::kEnd,           Op::kEndAck,        Op::kRequestMemoryRegion};
  Header h;
  h.op_flags = wire::op_flags(kOps[code.below(kOps.size())]);
  if (code.chance(64)) h.op_flags |= flag::kSendState;
  h.param = static_cast<std::uint16_t>(code.below(8));
  h.mx = static_cast<std::uint16_t>(8 + code.below(8));
  h.set_t_len(code.u16());
  h.d_id = code.chance(64) ? wire::kNoId : code.below(kIds);
  h.s_id = code.below(kIds);
  return h;
}

}  // namespace

SendEntry user_request(ByteCode& code, const Estate& estate) {
  SendEntry e{};
  switch (code.below(6)) {
    case 0:
    case 1:
      e.header = clear_to_send(code, estate);
      break;
    case 2:
      e.header = region(code, estate);
      break;
    case 3:
      e.header = get(code, estate);
      break;
    case 4:
      return data(code, estate);
    default:
      e.header = simple(code);
  }
  if (const auto option = some_option(code)) {
    e.payload_length = wire::kOptionSize;
    std::memcpy(e.payload, option->data(), option->size());
  }
  return e;
}

}  // namespace stp::fuzz
