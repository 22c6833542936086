// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/simulation.h"

#include <string_view>

#include "tools/sim/world.h"

namespace stp::sim {
namespace {

// Gives each profile its own random numbers for the same seed.
std::uint64_t mix(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return seed * 0x9e3779b97f4a7c15 ^ hash;
}

}  // namespace

Result simulate(const Profile& profile, std::uint64_t seed, Watch watch, unsigned nodes) {
  Dice dice(mix(seed, profile.name));
  auto scenario = draw_scenario(profile, dice);
  scenario.nodes = nodes;
  return simulate(scenario, dice, std::move(watch));
}

Result simulate(const Scenario& scenario, Dice dice, Watch watch) {
  Run run{{}, {watch.text, std::move(watch.file), watch.station}, {}, dice};
  const auto begin = run.now();
  World world(run, scenario);
  world.play();
  Result result;
  result.failures = run.verdict.failures();
  result.hash = run.trace.hash();
  result.simulated = run.now() - begin;
  result.frames = run.trace.frames();
  result.bytes = run.trace.bytes();
  result.faults = run.trace.faults();
  result.delivered = world.delivered();
  result.ops = run.trace.ops();
  result.repeats = run.trace.repeats() + world.repeats();
  result.handed_over = world.handed_over();
  result.calls = run.trace.calls();
  result.questions = run.trace.questions();
  return result;
}

}  // namespace stp::sim
