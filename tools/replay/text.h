// SPDX-License-Identifier: BSD-3-Clause
// Frames as text: a line for people, a JSON object for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/decoded.h"

namespace stp::replay {

// What the managed layer says in a frame: one value.
struct Detail {
  std::string_view name;  // "message", "tag", "taken", ...
  std::string text;       // of the value
  bool quoted = false;    // it is a word, and not a number
};

// "12 0.000345678 02:..:01 > 02:..:02 RTS CTS_req=1 ...", without a newline. Times count from
// `start`. `details`: of the managed layer.
std::string line_of(const Decoded& frame, std::int64_t start,
                    const std::vector<Detail>& details = {});

// One JSON object, without a newline.
std::string json_of(const Decoded& frame, const std::vector<Detail>& details = {});

// Seconds with nine decimal digits. `epoch`: the seconds of time 0.
std::string seconds(std::int64_t nanoseconds, std::int64_t epoch = 0);
std::string to_string(const MacAddr& mac);
std::optional<MacAddr> parse_mac(const std::string& text);
std::string hex(std::uint64_t value);

// The operation and its fields, as in a line. Also used to show two frames side by side.
std::string operation_text(const Decoded& frame);

}  // namespace stp::replay
