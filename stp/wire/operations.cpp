// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/operations.h"

#include "stp/wire/header.h"
#include "stp/wire/syntax.h"

namespace stp::wire {
namespace {

#define STP_FIELD(word, member, name) FieldName{Word::k##word, name},
#define STP_OPERATION_FIELDS(operation, fields, ...) \
  constexpr std::array k##operation##Fields{STP_FIELDS_##fields(STP_FIELD)};
STP_OPERATIONS(STP_OPERATION_FIELDS)
#undef STP_OPERATION_FIELDS
#undef STP_FIELD

#define STP_OPERATION_ROW(operation, fields, short_name, name, slot, when, asks, own, used,        \
                          illegal, constraint)                                                     \
  Operation{Op::k##operation, short_name, name, k##operation##Fields, slot, when, asks, own, used, \
            illegal,          constraint},
constexpr std::array kRows{STP_OPERATIONS(STP_OPERATION_ROW)};
#undef STP_OPERATION_ROW

constexpr auto by_code() {
  std::array<Operation, kOpCodes> table{};
  for (const auto& row : kRows) table[static_cast<std::size_t>(row.op)] = row;
  return table;
}
constexpr auto kByCode = by_code();

}  // namespace

const Operation& operation(Op op) {
  const auto code = static_cast<std::size_t>(op);
  return kByCode[code < kOpCodes ? code : 0];
}

std::span<const Operation> operations() {
  return kRows;
}

const char* short_name(Op op) {
  return operation(op).short_name;
}

// protocol: 6.2
bool consumes_slot(const Header& header) {
  const bool silent_data = header.op() == Op::kData && header.has(flag::kSilent);
  return syntax_of(header.op()).slot && !silent_data;
}

}  // namespace stp::wire
