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

// Every code has an entry, also those that are no operation.
const Syntax& syntax_of(Op op);

// UnknownOp, BadFlags or kNone. To be asked before any length is derived from the flags.
Counter check_op(const Header& header);

// ZeroPort, BadExponent, ZeroLength or kNone, for a header that check_op found good.
Counter check_fields(const Header& header);

// Fetch_Add and Compare_And_Swap are nothing without the operands in their option payload; a
// refusal of one has no use for them.
bool needs_operands(const Header& header);

}  // namespace stp::wire
