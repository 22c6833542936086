// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/dat1/registry/conf.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string_view>

namespace stp::udapl::registry {
namespace {

constexpr DAT_UINT32 kMajor = 1;

// "u1.2"
bool parse_version(std::string_view text, DAT_PROVIDER_INFO& info) {
  if (text.empty() || text.front() != 'u') return false;
  const auto* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data() + 1, end, info.dapl_version_major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return false;
  const auto minor = std::from_chars(major.ptr + 1, end, info.dapl_version_minor);
  return minor.ec == std::errc() && minor.ptr == end && info.dapl_version_major == kMajor;
}

bool parse_safety(std::string_view text, DAT_PROVIDER_INFO& info) {
  info.is_thread_safe = text == "threadsafe" ? DAT_TRUE : DAT_FALSE;
  return info.is_thread_safe == DAT_TRUE || text == "nonthreadsafe";
}

bool is_default(std::string_view text) {
  return text == "default" || text == "nondefault";
}

std::optional<Line> parse_line(const std::string& text) {
  std::istringstream words(text);
  Line line{};
  std::string name, api, safety, choice, version;
  words >> std::quoted(name) >> api >> safety >> choice >> std::quoted(line.library) >> version;
  if (words.fail() || name.empty() || name.front() == '#' ||
      name.size() >= sizeof line.info.ia_name)
    return std::nullopt;
  if (!parse_version(api, line.info) || !parse_safety(safety, line.info) || !is_default(choice))
    return std::nullopt;
  words >> std::quoted(line.instance_data);
  std::memcpy(line.info.ia_name, name.c_str(), name.size() + 1);
  return line;
}

}  // namespace

bool same(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
  return std::strcmp(a.ia_name, b.ia_name) == 0 && a.dapl_version_major == b.dapl_version_major &&
         a.dapl_version_minor == b.dapl_version_minor && a.is_thread_safe == b.is_thread_safe;
}

std::vector<Line> parse(std::istream& conf) {
  std::vector<Line> lines;
  for (std::string text; std::getline(conf, text);)
    if (auto line = parse_line(text)) lines.push_back(std::move(*line));
  return lines;
}

bool read_conf(std::vector<Line>& lines) {
  const auto* const override = std::getenv("DAT_OVERRIDE");
  std::ifstream conf(override != nullptr ? override : "/etc/dat.conf");
  if (!conf) return false;
  lines = parse(conf);
  return true;
}

}  // namespace stp::udapl::registry
