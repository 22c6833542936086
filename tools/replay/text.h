// SPDX-License-Identifier: BSD-3-Clause
// Frames as text: a line for people, a JSON object for programs.
#pragma once

#include <optional>
#include <string>

#include "tools/replay/decoded.h"

namespace stp::replay {

// "12 0.000345678 02:..:01 > 02:..:02 RTS CTS_req=1 ...", without a newline. Times count from
// `start`.
std::string line_of(const Decoded& frame, std::int64_t start);

// One JSON object, without a newline.
std::string json_of(const Decoded& frame);

// Seconds with nine decimal digits.
std::string seconds(std::int64_t nanoseconds);
std::string to_string(const MacAddr& mac);
std::optional<MacAddr> parse_mac(const std::string& text);
std::string hex(std::uint64_t value);

// The operation and its fields, as in a line. Also used to show two frames side by side.
std::string operation_text(const Decoded& frame);

}  // namespace stp::replay
