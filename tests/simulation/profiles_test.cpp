// SPDX-License-Identifier: BSD-3-Clause
// Every profile, with a few seeds each. stp-sim plays thousands.
#include <gtest/gtest.h>

#include "tests/simulation/simulation.h"

namespace stp::sim {
namespace {

class EveryProfile : public ::testing::TestWithParam<Profile> {};

TEST_P(EveryProfile, keeps_its_promises) {
  auto const& profile = GetParam();
  std::uint64_t const seeds = profile.weight == 0 ? 1 : 25;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    auto const result = simulate(profile, seed);
    for (auto const& failure : result.failures)
      ADD_FAILURE() << failure << "\n  replay: stp-sim --seed " << seed << " --profile "
                    << profile.name << " --verbose";
    EXPECT_GT(result.frames, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(simulation, EveryProfile,
                         ::testing::ValuesIn(profiles().begin(), profiles().end()),
                         [](const auto& parameter) {
                           std::string name = parameter.param.name;
                           for (auto& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace stp::sim
