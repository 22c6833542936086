// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/syntax.h"

#include <array>

namespace stp::wire {
namespace {

constexpr std::size_t kOpCodes = 32;

// A flag that an operation has no use for is an unused field: not looked at (section 3). That holds
// for Reject on what answers nothing, Last or Silent on a control operation, and so on. Illegal are
// only the flags that change how a frame is read: a function, an append, and the reserved bit.
// protocol: 3.7, 3.9
constexpr std::uint16_t kIllegalInControl = flag::kReserved | flag::kAppend | flag::kFunction;
constexpr std::uint16_t kIllegalInGet = flag::kReserved | flag::kAppend;
constexpr std::uint16_t kIllegalInData = flag::kReserved | flag::kFunction;

constexpr std::array<Syntax, kOpCodes> make_table() {
  std::array<Syntax, kOpCodes> table{};
  auto set = [&table](Op op, const char* name, bool slot, Constraint constraint = Constraint::kNone,
                      std::uint16_t illegal_flags = kIllegalInControl) {
    table[static_cast<std::size_t>(op)] = {name, slot, illegal_flags, constraint};
  };
  constexpr bool kSlot = true, kNoSlot = false;
  set(Op::kRequestConnection, "RC", kNoSlot, Constraint::kSizes);
  set(Op::kConnectionAnswer, "CA", kNoSlot, Constraint::kSizes);
  set(Op::kRequestDisconnect, "RD", kNoSlot);
  set(Op::kDisconnectAnswer, "DA", kNoSlot);
  set(Op::kDisconnectComplete, "DC", kNoSlot);
  set(Op::kNoOperation, "NOP", kSlot);
  set(Op::kRequestMemoryRegion, "RMR", kSlot, Constraint::kLength);
  set(Op::kMemoryRegionAvailable, "MRA", kSlot);
  set(Op::kGet, "GET", kSlot, Constraint::kNone, kIllegalInGet);
  set(Op::kRequestToSend, "RTS", kSlot, Constraint::kMaxBlock);
  set(Op::kRequestAnswer, "RA", kSlot);
  set(Op::kRequestToReceive, "RTR", kSlot, Constraint::kLength);
  set(Op::kClearToSend, "CTS", kSlot, Constraint::kBlocksize);
  set(Op::kData, "DATA", kSlot, Constraint::kNone, kIllegalInData);
  set(Op::kRequestState, "RS", kNoSlot);
  set(Op::kRequestStateResponse, "RSR", kNoSlot);
  set(Op::kEnd, "END", kSlot);
  set(Op::kEndAck, "EA", kSlot);
  return table;
}
constexpr auto kTable = make_table();

constexpr unsigned bit(Function function) {
  return 1u << static_cast<unsigned>(function);
}
constexpr unsigned kLegalFunctions = bit(Function::kGet) | bit(Function::kFetchIncrement) |
                                     bit(Function::kFetchDecrement) | bit(Function::kFetchClear) |
                                     bit(Function::kFetchAdd) | bit(Function::kCompareAndSwap) |
                                     bit(Function::kFetchOpComplete);

constexpr bool within(std::uint32_t exponent, unsigned min, unsigned max) {
  return exponent >= min && exponent <= max;
}

constexpr Counter exponent_reason(bool legal) {
  return legal ? Counter::kNone : Counter::kBadExponent;
}

}  // namespace

const Syntax& syntax_of(Op op) {
  const auto code = static_cast<std::size_t>(op);
  return kTable[code < kOpCodes ? code : 0];
}

Counter check_op(const Header& header) {
  const Syntax& syntax = syntax_of(header.op());
  if (syntax.name == nullptr) return Counter::kUnknownOp;
  if (header.has(syntax.illegal_flags)) return Counter::kBadFlags;
  // What is no GET has function 0 here, which is legal.
  if ((kLegalFunctions & bit(header.function())) == 0) return Counter::kBadFlags;
  // protocol: 3.8
  if (header.has(flag::kAppend) && !header.has(flag::kLast)) return Counter::kBadFlags;
  return Counter::kNone;
}

// protocol: 3.11, 9.8
Counter check_fields(const Header& header) {
  // A refused connection has neither a Port nor sizes to tell.
  // protocol: 12.3
  if (header.op() == Op::kConnectionAnswer && header.has(flag::kReject)) return Counter::kNone;
  if (header.s_port == 0) return Counter::kZeroPort;
  switch (syntax_of(header.op()).constraint) {
    case Constraint::kNone:
      break;
    case Constraint::kSizes:
      return exponent_reason(within(header.bufx, kMinBufsize, kMaxBufsize) &&
                             within(header.sync, kMinMaxStu, kMaxMaxStu));
    case Constraint::kMaxBlock:
      return exponent_reason(within(header.mx, kMinBlocksize, kMaxBlocksize));
    case Constraint::kBlocksize:
      return exponent_reason(within(header.param, kMinBlocksize, kMaxBlocksize));
    case Constraint::kLength:
      return header.t_len() != 0 ? Counter::kNone : Counter::kZeroLength;
  }
  return Counter::kNone;
}

bool needs_operands(const Header& header) {
  if (header.op() != Op::kGet || header.has(flag::kReject)) return false;
  return header.function() == Function::kFetchAdd || header.function() == Function::kCompareAndSwap;
}

}  // namespace stp::wire
