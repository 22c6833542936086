// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stp-replay/commands.h"

#include <cstdio>

#include "tools/replay/text.h"

namespace stp::replay {
namespace {

void print(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

int cannot_read(const std::string& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "stp-replay: %s\n", error.c_str());
  return kCannotRead;
}

}  // namespace

int decode(const Options& options) {
  std::string error;
  auto capture = Capture::open(options.file, error);
  if (!capture) return cannot_read(error);
  Decoder decoder;
  CapturedFrame captured;
  std::int64_t start = 0;
  while (capture->next(captured)) {
    if (captured.number == 1) start = captured.time;
    auto const frame = decoder.decode(captured);
    print(options.json ? json_of(frame) : line_of(frame, start));
  }
  return capture->error().empty() ? kNothingWrong : cannot_read(capture->error());
}

}  // namespace stp::replay
