// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/syntax.h"

namespace stp::wire {
namespace {

constexpr bool within(std::uint32_t exponent, unsigned min, unsigned max) {
  return exponent >= min && exponent <= max;
}

constexpr DropReason exponent_reason(bool legal) {
  return legal ? DropReason::kNone : DropReason::kBadExponent;
}

}  // namespace

// protocol: 3.11, 9.8
DropReason check_constrained(const Header& header) {
  // A refusal names neither a Port nor sizes.
  // protocol: 12.3
  if (header.op() == Op::kConnectionAnswer && header.has(flag::kReject)) return DropReason::kNone;
  if (header.s_port == 0) return DropReason::kZeroPort;
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
      return header.t_len() != 0 ? DropReason::kNone : DropReason::kZeroLength;
  }
  return DropReason::kNone;
}

bool needs_operands(const Header& header) {
  if (header.op() != Op::kGet || header.has(flag::kReject)) return false;
  return header.function() == Function::kFetchAdd || header.function() == Function::kCompareAndSwap;
}

}  // namespace stp::wire
