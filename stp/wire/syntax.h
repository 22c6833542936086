// SPDX-License-Identifier: BSD-3-Clause
// What each operation must look like: one table, and the checks of profile section 12 that need
// nothing but the header.
#pragma once

#include "stp/counters.h"
#include "stp/wire/header.h"

namespace stp::wire {

// The fields of an operation that can be illegal whatever the receiver's state.
enum class Constraint : std::uint8_t {
  kNone,
  kSizes,      // Bufsize and Max_STU
  kMaxBlock,   // Max_Block
  kBlocksize,  // Blocksize
  kLength,     // T_len must not be 0
};

struct Syntax {
  const char* name = nullptr;  // nullptr: no such operation
  bool slot = false;           // consumes a Slot at its receiver
  std::uint16_t illegal_flags = kFlagsMask;
  Constraint constraint = Constraint::kNone;
};

inline constexpr std::size_t kOpCodes = 32;

// A flag that an operation has no use for is an unused field: not looked at (section 3). That holds
// for Reject on what answers nothing, Last or Silent on a control operation, and so on. Illegal are
// only the flags that change how a frame is read: a function, an append, and the reserved bit.
// protocol: 3.7, 3.9
inline constexpr std::uint16_t kIllegalInControl =
    flag::kReserved | flag::kAppend | flag::kFunction;
inline constexpr std::uint16_t kIllegalInGet = flag::kReserved | flag::kAppend;
inline constexpr std::uint16_t kIllegalInData = flag::kReserved | flag::kFunction;

constexpr std::array<Syntax, kOpCodes> syntax_table() {
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
inline constexpr auto kSyntax = syntax_table();

// Every code has an entry, also those that are no operation.
constexpr const Syntax& syntax_of(Op op) {
  const auto code = static_cast<std::size_t>(op);
  return kSyntax[code < kOpCodes ? code : 0];
}

constexpr unsigned bit(Function function) {
  return 1u << static_cast<unsigned>(function);
}
inline constexpr unsigned kLegalFunctions =
    bit(Function::kGet) | bit(Function::kFetchIncrement) | bit(Function::kFetchDecrement) |
    bit(Function::kFetchClear) | bit(Function::kFetchAdd) | bit(Function::kCompareAndSwap) |
    bit(Function::kFetchOpComplete);

// UnknownOp, BadFlags or kNone. To be asked before any length is derived from the flags.
// `op`: the header's own, which the caller may know beforehand.
constexpr Counter check_op(const Header& header, Op op) {
  const Syntax& syntax = syntax_of(op);
  if (syntax.name == nullptr) return Counter::kUnknownOp;
  if (header.has(syntax.illegal_flags)) return Counter::kBadFlags;
  // Only a GET has a function, and only DATA an append.
  if (op == Op::kGet && (kLegalFunctions & bit(header.function())) == 0) return Counter::kBadFlags;
  // protocol: 3.8
  if (op == Op::kData && header.has(flag::kAppend) && !header.has(flag::kLast))
    return Counter::kBadFlags;
  return Counter::kNone;
}
constexpr Counter check_op(const Header& header) {
  return check_op(header, header.op());
}

Counter check_constrained(const Header& header);
// ZeroPort, BadExponent, ZeroLength or kNone, for a header that check_op found good.
inline Counter check_fields(const Header& header, Op op) {
  if (syntax_of(op).constraint != Constraint::kNone) return check_constrained(header);
  return header.s_port != 0 ? Counter::kNone : Counter::kZeroPort;
}
inline Counter check_fields(const Header& header) {
  return check_fields(header, header.op());
}

// Fetch_Add and Compare_And_Swap are nothing without the operands in their option payload; a
// refusal of one has no use for them.
bool needs_operands(const Header& header);

}  // namespace stp::wire
