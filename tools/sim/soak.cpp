// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/soak.h"

#include <algorithm>

#include "tools/sim/live_bytes.h"
#include "tools/sim/world.h"

namespace stp::sim {
namespace {

constexpr Time kPause = 60 * kSecond;  // the longest pause between two sessions
constexpr Rate kPercent = kAlways / 100;

Scenario soak(Time span, Dice& dice) {
  auto s = draw_scenario(*find_profile("clean"), dice);
  s.hosts.resize(2);
  s.pairs = 1;
  s.cycles = static_cast<unsigned>(span / (kPause / 2));
  s.pause = kPause;
  s.faults = {
      .loss = kPercent, .duplicate = kPercent, .reorder = kPercent, .reorder_by = kMillisecond};
  return s;
}

}  // namespace

SoakResult play_soak(Time span, std::uint64_t seed) {
  Dice dice(seed);
  auto scenario = soak(span, dice);
  SoakResult result;
  std::vector<std::size_t> heap;
  heap.reserve(scenario.cycles);
  scenario.session_over = [&] { heap.push_back(test::live_bytes()); };
  auto played = simulate(scenario, dice);
  result.failures = std::move(played.failures);
  result.simulated = played.simulated;
  result.frames = played.frames;
  result.sessions = heap.size();
  const auto quarter = static_cast<std::ptrdiff_t>(heap.size() / 4);
  if (quarter == 0) return result;
  result.early = *std::max_element(heap.begin() + quarter, heap.begin() + 2 * quarter);
  result.late = *std::max_element(heap.end() - quarter, heap.end());
  if (result.late > result.early + kSoakSlack)
    result.failures.push_back("memory grows with the number of sessions");
  return result;
}

}  // namespace stp::sim
