// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/fields.h"

#include <array>

namespace stp::replay {
namespace {

using wire::Op;
namespace flag = wire::flag;

constexpr std::array kFlags{
    FlagName{flag::kReserved, "Reserved"},   FlagName{flag::kAppend, "Append"},
    FlagName{flag::kReject, "Reject"},       FlagName{flag::kLast, "Last"},
    FlagName{flag::kOrder, "Order"},         FlagName{flag::kSendState, "Send_state"},
    FlagName{flag::kInterrupt, "Interrupt"}, FlagName{flag::kSilent, "Silent"}};

}  // namespace

std::span<const FieldName> fields_of(wire::Op op) {
  return wire::operation(op).fields;
}

std::string_view header_name(Field field) {
  for (const auto& named : fields_of(Op::kNoOperation))
    if (named.word == field) return named.name;
  return "T_len";
}

std::optional<Field> find_field(wire::Op op, std::string_view name) {
  for (const auto& named : fields_of(op))
    if (named.name == name) return named.word;
  return std::nullopt;
}

std::string op_name(const wire::Header& header) {
  if (const auto* const name = wire::short_name(header.op())) return name;
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned>(header.op());
  return {'0', 'x', kDigits[code >> 4], kDigits[code & 15]};
}

std::optional<wire::Op> find_op(std::string_view name) {
  for (const auto& operation : wire::operations())
    if (operation.short_name == name) return operation.op;
  return std::nullopt;
}

std::string_view function_name(wire::Function function) {
  switch (function) {
    case wire::Function::kGet:
      return "Get";
    case wire::Function::kFetchIncrement:
      return "Fetch_Increment";
    case wire::Function::kFetchDecrement:
      return "Fetch_Decrement";
    case wire::Function::kFetchClear:
      return "Fetch_Clear";
    case wire::Function::kFetchAdd:
      return "Fetch_Add";
    case wire::Function::kCompareAndSwap:
      return "Compare_And_Swap";
    case wire::Function::kFetchOpComplete:
      return "FetchOp_Complete";
  }
  return "illegal";
}

std::span<const FlagName> flag_names() {
  return kFlags;
}

std::uint16_t used_flags(wire::Op op) {
  return wire::operation(op).used_flags;
}

}  // namespace stp::replay
