// SPDX-License-Identifier: BSD-3-Clause
// The names of each operation's fields, for traces and scripts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stp/wire/operations.h"

namespace stp::replay {

using Field = wire::Word;
using FieldName = wire::FieldName;

// The fields that the operation uses, with its own names, in the order of the header's words. Empty
// for an unknown operation. A NOP's fields are opaque and have the header's names.
std::span<const FieldName> fields_of(wire::Op op);

// The names of the header's fields: Param, D_Port, S_Port, D_Key, ...
std::string_view header_name(Field field);
std::optional<Field> find_field(wire::Op op, std::string_view name);

// "RTS", or "0x1f" for an unknown code.
std::string op_name(const wire::Header& header);
// The operation with that short name.
std::optional<wire::Op> find_op(std::string_view name);
// The function of a GET: "Get", "Fetch_Add", ...
std::string_view function_name(wire::Function function);

struct FlagName {
  std::uint16_t flag;
  std::string_view name;
};
std::span<const FlagName> flag_names();

// The flags that the operation uses (docs/protocol.md, rule 3.5).
std::uint16_t used_flags(wire::Op op);

}  // namespace stp::replay
