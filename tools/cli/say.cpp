// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/say.h"

#include <cstdio>
#include <string>

#include "stp/base/printable.h"

namespace stp::cli {
namespace {

// In one call, so that lines of several threads do not mix.
void write_line(std::FILE* to, std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), to);
}

}  // namespace

void say(std::string_view program, std::string_view text) {
  write_line(stderr, std::string(program) + ": " + printable(text));
}

void print(std::string_view text) {
  write_line(stdout, printable(text));
}

}  // namespace stp::cli
