// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/name.h"

#include <algorithm>

namespace stp::files {
namespace {

bool is_control(char c) {
  auto const byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

}  // namespace

std::optional<std::string> accepted_name(std::string_view name) {
  auto const slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  if (name.empty() || name == "." || name == ".." || name.size() > kMaxNameLength ||
      name.starts_with(kTemporaryPrefix) || std::any_of(name.begin(), name.end(), is_control))
    return std::nullopt;
  return std::string(name);
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < out.size(); ++i) {
    // 0xc2 0x80..0x9f: the C1 control characters in UTF-8.
    bool const c1 = out[i] == '\xc2' && i + 1 < out.size() &&
                    static_cast<unsigned char>(out[i + 1]) >= 0x80 &&
                    static_cast<unsigned char>(out[i + 1]) < 0xa0;
    if (is_control(out[i])) out[i] = '?';
    if (c1) out[i] = out[i + 1] = '?';
  }
  return out;
}

}  // namespace stp::files
