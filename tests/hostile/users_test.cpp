// SPDX-License-Identifier: BSD-3-Clause
// What remains for other users, whatever one user takes.
#include <csignal>

#include "tests/hostile/hostile_fixture.h"

namespace stp::hostile {
namespace {

class SeveralUsers : public HostileFixture {
 protected:
  void SetUp() override {
    if (!several_users()) GTEST_SKIP() << "only root can act as several users";
    HostileFixture::SetUp();
    if (!HasFatalFailure() && !others_reach_it())
      GTEST_SKIP() << "TMPDIR lies in a directory that other users may not enter";
  }
};

TEST_F(SeveralUsers, OneUserDoesNotTakeAllPlaces) {
  start_measuring();
  const auto greedy = attack({"places", kFirst}, 60);
  ASSERT_TRUE(started_) << greedy->output();
  EXPECT_GT(count_of(greedy->output(), "places"), 0U);
  const auto modest = attack({"places", kSecond, {"--most", "8"}}, 20);
  ASSERT_TRUE(started_) << modest->output();
  EXPECT_EQ(count_of(modest->output(), "places"), 8U) << greedy->output();
  stop_measuring("places");
}

TEST_F(SeveralUsers, OneUserDoesNotTakeAllMappings) {
  start_measuring();
  std::vector<std::unique_ptr<test::Program>> greedy;
  for (int i = 0; i < 2; ++i) greedy.push_back(attack({"mappings", kFirst}, 15));
  const auto modest = attack({"mappings", kSecond, {"--most", "16"}}, 20);
  EXPECT_EQ(count_of(modest->output(), "maps"), 16U) << modest->output() << greedy[0]->output();
  stop_measuring("mappings");
}

TEST_F(SeveralUsers, AllOfThemTogether) {
  std::vector<Hostility> all;
  int seed = 100;
  for (const auto uid : {kFirst, kSecond, kThird})
    for (const auto* const move : {"spoil", "noise", "sharing"})
      all.push_back({move, uid, {"--seed", std::to_string(seed++)}});
  const auto hoarder = attack({"hoard", kThird}, 1.0);
  const auto tally = endure(all, 3.0);
  hoarder->signal(SIGKILL);
  hoarder->wait();
  check(tally);
}

}  // namespace
}  // namespace stp::hostile
