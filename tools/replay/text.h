// SPDX-License-Identifier: BSD-3-Clause
// Frames as text: a line for people, an object for programs.
#pragma once

#include <optional>
#include <string>

#include "tools/replay/decoded.h"

namespace stp::replay {

// "12 0.000345678 02:..:01 > 02:..:02 RTS CTS_req=1 ...", without the line's end. `start`: the
// time that is 0.
std::string line_of(const Decoded& frame, std::int64_t start);

// One JSON object, without the line's end.
std::string json_of(const Decoded& frame);

// Seconds with nine digits behind the point.
std::string seconds(std::int64_t nanoseconds);
std::string to_string(const MacAddr& mac);
std::optional<MacAddr> parse_mac(const std::string& text);
std::string hex(std::uint64_t value);
// With quotes, and what JSON does not allow escaped.
std::string quoted(std::string_view text);

// The operation and its fields, as in a line: also used to show two frames side by side.
std::string operation_text(const Decoded& frame);

}  // namespace stp::replay
