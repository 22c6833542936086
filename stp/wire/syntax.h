// SPDX-License-Identifier: BSD-3-Clause
// The syntax of each operation: the checks of docs/protocol.md, section 12, that need only the
// header.
#pragma once

#include "stp/counters.h"
#include "stp/wire/operations.h"

namespace stp::wire {

// The data needed for each frame, by code: a part of the table of operations.
struct Syntax {
  bool known = false;
  bool slot = false;  // takes a Slot at its receiver
  std::uint16_t illegal_flags = kFlagsMask;
  Constraint constraint = Constraint::kNone;
  When when = When::kOpen;
};

constexpr std::array<Syntax, kOpCodes> syntax_table() {
  std::array<Syntax, kOpCodes> table{};
#define STP_SYNTAX(operation, fields, short_name, name, slot, when, asks, own, used, illegal, \
                   constraint)                                                                \
  table[static_cast<std::size_t>(Op::k##operation)] = {true, (slot) != Slot::kNone, illegal,  \
                                                       constraint, when};
  STP_OPERATIONS(STP_SYNTAX)
#undef STP_SYNTAX
  return table;
}
inline constexpr auto kSyntax = syntax_table();

// Every code has an entry, even unknown ones.
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

// Returns UnknownOp, BadFlags or kNone. Call before deriving any length from the flags. `op`: the
// header's own, which the caller may know already.
constexpr DropReason check_op(const Header& header, Op op) {
  const Syntax& syntax = syntax_of(op);
  if (!syntax.known) return DropReason::kUnknownOp;
  if (header.has(syntax.illegal_flags)) return DropReason::kBadFlags;
  // Only a GET has a function, and only DATA an append.
  if (op == Op::kGet && (kLegalFunctions & bit(header.function())) == 0)
    return DropReason::kBadFlags;
  // protocol: 3.8
  if (op == Op::kData && header.has(flag::kAppend) && !header.has(flag::kLast))
    return DropReason::kBadFlags;
  return DropReason::kNone;
}
constexpr DropReason check_op(const Header& header) {
  return check_op(header, header.op());
}

DropReason check_constrained(const Header& header);
// Returns ZeroPort, BadExponent, ZeroLength or kNone, for a header that passed check_op.
inline DropReason check_fields(const Header& header, Op op) {
  if (syntax_of(op).constraint != Constraint::kNone) return check_constrained(header);
  return header.s_port != 0 ? DropReason::kNone : DropReason::kZeroPort;
}
inline DropReason check_fields(const Header& header) {
  return check_fields(header, header.op());
}

// Fetch_Add and Compare_And_Swap need the operands in their option payload; a refusal of one does
// not.
bool needs_operands(const Header& header);

}  // namespace stp::wire
