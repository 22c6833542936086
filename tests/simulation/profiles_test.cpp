// SPDX-License-Identifier: BSD-3-Clause
// Every profile, with a few seeds each. stp-sim plays thousands.
#include <gtest/gtest.h>

#include "tools/sim/simulation.h"

namespace stp::sim {
namespace {

class EveryProfile : public ::testing::TestWithParam<Profile> {};

TEST_P(EveryProfile, keeps_its_promises) {
  const auto& profile = GetParam();
  std::uint64_t const seeds = profile.weight == 0 ? 1 : 25;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto result = simulate(profile, seed);
    for (const auto& failure : result.failures)
      ADD_FAILURE() << failure << "\n  replay: stp-sim --seed " << seed << " --profile "
                    << profile.name << " --verbose";
    EXPECT_GT(result.frames, 0U);
  }
}

// Seeds that failed once. A pause was taken for a long round trip, so lost data was requested so
// rarely that a Write was given up although its peer answered everything. A program changed the
// bytes of a region while answers to Gets were being sent from it. A put into a region that had
// just been lost returned a wrong error. The answer to the question of 5.37 was lost, and nothing
// repeated it. Two requesters were promised the same Port. Each of eight RCs, or its CA, was lost,
// and the simulated program gave up, as no program of the managed layer does that early. A Port
// without a connection asked, while it closed, whether its peer is alive.
// protocol: 5.20, 5.31, 5.36, 5.37, 10.11
TEST(Seeds, that_failed_once_keep_their_promises) {
  constexpr std::pair<const char*, std::uint64_t> kSeeds[] = {
      {"busy", 7'806'187},           {"busy", 7'871'813}, {"mixed", 20'166'593},
      {"abrupt", 411'159},           {"liar", 283'947},   {"flood", 235'216},
      {"many-vcs", 512'641},         {"mixed", 674'713},  {"flood", 921'191},
      {"connectionless", 20'008'136}};
  for (const auto& [name, seed] : kSeeds)
    for (const auto& failure : simulate(*find_profile(name), seed).failures)
      ADD_FAILURE() << failure << ": " << name << " " << seed;
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
