// SPDX-License-Identifier: BSD-3-Clause
// Capture files: any bytes can be decoded, checked and played, or give a clear error.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tools/replay/check/checker.h"
#include "tools/replay/ladder/ladder.h"
#include "tools/replay/play/player.h"
#include "tools/replay/text.h"

namespace stp::fuzz {
namespace {

using namespace stp::replay;

// Playing needs a Node and its users' memory, and long files find no more faults than short ones.
constexpr std::size_t kMostPlayed = 64;
constexpr std::size_t kMostDrawn = 256;

std::optional<Capture> open(std::vector<char>& file, std::string& error) {
  auto capture = Capture::read(fmemopen(file.data(), file.size(), "rb"), "fuzz", error);
  EXPECT_NE(capture.has_value(), !error.empty());
  return capture;
}

void decode_and_check(std::vector<char>& file) {
  std::string error;
  auto capture = open(file, error);
  if (!capture) return;
  std::size_t said = 0;
  Ladder ladder("fuzz", {.frames = kMostDrawn});
  Checker checker(
      [&](const Finding& finding) {
        said += line_of(finding).size() + json_of(finding).size();
        ladder.add(finding);
      },
      {.endpoints = file.size() % 2 == 0});
  Decoder decoder;
  ManagedView managed;
  CapturedFrame captured;
  while (capture->next(captured)) {
    const auto frame = decoder.decode(captured);
    const auto details = managed.look(frame);
    said += line_of(frame, 0, details).size() + json_of(frame, details).size();
    ladder.add(frame, details);
    if (capture->dropped() != 0) checker.lose(frame, capture->dropped());
    checker.frame(frame);
  }
  checker.finish();
  said += html_of(ladder, "docs").size() + svg_of(ladder, "docs").size();
}

void play(std::vector<char>& file) {
  std::string error;
  auto capture = open(file, error);
  if (!capture) return;
  const auto trace = record(*capture, error);
  if (!trace || trace->empty() || trace->size() > kMostPlayed) return;
  play_node(*trace, trace->front().decoded.frame.dst);
  play_node(*trace, trace->front().decoded.frame.src);
}

}  // namespace
}  // namespace stp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<char> file(data, data + size);
  stp::fuzz::decode_and_check(file);
  stp::fuzz::play(file);
  return 0;
}
