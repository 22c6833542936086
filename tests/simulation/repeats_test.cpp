// SPDX-License-Identifier: BSD-3-Clause
// Without loss hardly any frame is sent twice, even if hosts are busy or programs slow.
#include <gtest/gtest.h>

#include "tools/sim/simulation.h"

namespace stp::sim::repeats_test {
namespace {

class Repeats : public ::testing::TestWithParam<const char*> {};

// protocol: 10.21
TEST_P(Repeats, are_below_a_thousandth_of_the_frames_where_nothing_is_lost) {
  constexpr std::uint64_t kSeeds = 300;
  std::uint64_t frames = 0, repeats = 0, runs = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto result = simulate(*find_profile(GetParam()), seed);
    if (result.faults != 0) continue;
    ++runs;
    frames += result.frames;
    repeats += result.repeats;
  }
  EXPECT_GT(runs, kSeeds / 2);
  EXPECT_LE(1'000 * repeats, frames) << repeats << " repeats among " << frames << " frames";
}

INSTANTIATE_TEST_SUITE_P(simulation, Repeats, ::testing::Values("clean", "slow", "busy"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace stp::sim::repeats_test
