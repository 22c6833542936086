// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/replay.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace stp::fuzz {
namespace {

namespace fs = std::filesystem;

void run(const std::string& name, const std::string& bytes) {
  std::fprintf(stderr, "%s\n", name.c_str());
  LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// nullopt: `text` is not base64.
std::optional<std::string> decode(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  unsigned bits = 0, value = 0;
  for (const char c : text) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value << 6 | static_cast<unsigned>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(value >> bits & 0xff));
  }
  return bytes;
}

// Returns how many inputs have run; nullopt: a line is wrong.
std::optional<std::size_t> run_packed(const std::string& path) {
  std::ifstream in(path);
  std::set<std::string> names;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.starts_with('#')) continue;
    const auto space = line.find(' ');
    const auto name = line.substr(0, space);
    const auto bytes = space == std::string::npos ? std::nullopt : decode(line.substr(space + 1));
    const bool again = !names.insert(name).second;
    if (name.empty() || !bytes || again) {
      std::fprintf(stderr, "%s:%zu: %s\n", path.c_str(), number,
                   again ? "an earlier line has this name" : "a line is NAME BYTES-IN-BASE64");
      return std::nullopt;
    }
    run(name, *bytes);
  }
  return names.size();
}

std::optional<std::size_t> run_folder(const std::string& path) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    if (!replay_file(file)) return std::nullopt;
  return files.size();
}

}  // namespace

int replay(const std::string& path, std::optional<std::size_t> count) {
  const auto ran = fs::is_directory(path) ? run_folder(path) : run_packed(path);
  if (!ran) return 2;
  std::printf("%zu inputs\n", *ran);
  std::fflush(stdout);
  if (*ran != 0 && *ran == count.value_or(*ran)) return 0;
  std::fprintf(stderr, "%s has that many, tests/fuzz/CMakeLists.txt expects %zu\n", path.c_str(),
               count.value_or(1));
  return 2;
}

bool replay_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  run(fs::path(path).filename(), std::string(std::istreambuf_iterator<char>(in), {}));
  return true;
}

}  // namespace stp::fuzz
