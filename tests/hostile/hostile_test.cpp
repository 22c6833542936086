// SPDX-License-Identifier: BSD-3-Clause
// Hostile programs against stpd. Whatever they do, an honest pair keeps working, no program gets
// another's objects, stpd's threads make progress, stpd holds no more at the end than before, and
// it ends on SIGTERM.
#include "tests/hostile/hostile_fixture.h"

#include <cerrno>
#include <csignal>

#include "tools/stpd/region_memory.h"

namespace stp::hostile {
namespace {

using UnderAttack = HostileFixture;

// The rate of the pair beside `move`, which uses as many cores as the moves it is compared with.
class RateUnderAttack : public HostileFixture {
 protected:
  double rate_beside(const std::string& move, double seconds) {
    const auto tally = endure({{move, kFirst}, {move, kSecond}}, seconds);
    EXPECT_EQ(tally.fault, "");
    return static_cast<double>(tally.trips) / seconds;
  }
  void keeps_its_rate_beside(const std::string& move) {
    constexpr double kSeconds = 1.5, kFactor = 12;
    const auto usual = rate_beside("spin", kSeconds);
    const auto beside = rate_beside(move, kSeconds);
    RecordProperty("usual", std::to_string(usual));
    RecordProperty("beside", std::to_string(beside));
    EXPECT_GT(beside * kFactor, usual);
    EXPECT_EQ(daemon->returns_to(before), "");
    EXPECT_EQ(daemon->end(), "");
  }
};

TEST_F(RateUnderAttack, RingsThatAreRefilledWithRefusedRequestsTakeAShareAndNoMore) {
  keeps_its_rate_beside("refill");
}

TEST_F(RateUnderAttack, RingsThatAreAlwaysFullTakeAShareAndNoMore) {
  keeps_its_rate_beside("stream");
}

TEST_F(UnderAttack, NoiseInSharedPagesHurtsNobody) {
  withstands({{"spoil", kFirst}, {"spoil", kSecond, {"--seed", "2"}}}, 1.5);
}

TEST_F(UnderAttack, MemoryWhosePagesGoHurtsNobody) {
  withstands({{"holes"}}, 1.5);
}

TEST_F(UnderAttack, PagesOfItsOwnMemoryThatAreHardToTakeAwayHoldUpNobody) {
  withstands({{"vacate", kFirst}, {"vacate", kSecond}}, 1.5);
}

TEST_F(UnderAttack, PagesThatAreTakenAwayWithoutPauseHoldUpNobody) {
  withstands({{"punch", kFirst}, {"punch", kSecond}}, 1.5);
}

TEST_F(UnderAttack, FilesThatAreLockedWhileTheyAreMappedHoldUpNobody) {
  withstands({{"contend", kFirst}, {"contend", kSecond}}, 1.5);
}

TEST_F(UnderAttack, PagesThatAreMovedHoldUpNobody) {
  const auto tally = endure({{"huge", kFirst}, {"huge", kSecond}}, 1.5);
  if (stpd::PagePins::possible()) {
    EXPECT_EQ(count_of(outputs_, "made"), 0U) << outputs_;
  }
  check(tally);
}

TEST_F(UnderAttack, ClientsThatReadNoAnswersAreDropped) {
  withstands({{"deaf"}}, 1.0);
}

TEST_F(UnderAttack, AFloodOfRequestsOfEveryKindHoldsUpNobody) {
  withstands({{"flood", kFirst}, {"flood", kSecond}}, 1.5);
}

TEST_F(UnderAttack, AFullBacklogKeepsNoOperatorOut) {
  withstands({{"crowd", kFirst}, {"crowd", kSecond}}, 1.5);
  EXPECT_GT(count_of(outputs_, "full"), 0U) << outputs_;
}

TEST_F(UnderAttack, ThoseWhoGoInTheMiddleOfARequestLeaveNothing) {
  withstands({{"leave", kFirst}, {"leave", kSecond}}, 1.5);
}

TEST_F(UnderAttack, GuessedIdsReachNothing) {
  withstands({{"forge", kFirst}, {"forge", kSecond, {"--seed", "7"}}}, 1.5);
}

TEST_F(UnderAttack, AnythingByTheDiceHurtsNobody) {
  withstands({{"noise", kFirst, {"--seed", "11"}}, {"noise", kSecond, {"--seed", "12"}}}, 2.0);
}

TEST_F(UnderAttack, AddressesThatNobodyHasKeepNobodyFromFindingAnother) {
  test::TemporaryDirectory directory;
  const auto memif = "memif:" + directory.path() + "/memif,address=10.9.0.";
  const Daemon there({}, memif + "2/16,role=server,mac=02:00:00:00:09:02");
  ASSERT_TRUE(there.ready()) << there.log();
  Daemon here({}, memif + "1/16,role=client,mac=02:00:00:00:09:01");
  ASSERT_TRUE(here.ready()) << here.log();
  std::vector<std::unique_ptr<test::Program>> programs;
  for (const auto* const uid : {"65530", "65531"}) {
    std::vector<std::string> arguments{HOSTILE_ATTACKER, "strangers", here.socket(), "30"};
    if (several_users()) arguments.insert(arguments.end(), {"--uid", uid});
    programs.push_back(std::make_unique<test::Program>(arguments));
    ASSERT_TRUE(programs.back()->says("ready")) << programs.back()->output();
  }
  // Resolves repeatedly while they run: an address may have to be resolved again.
  HonestPair honest_pair(here.socket(), 3'000);
  ASSERT_EQ(honest_pair.fault(), "");
  Measured measured(honest_pair, here);
  Client honest(here.socket());
  ASSERT_TRUE(honest.ok());
  auto order = Client::request(RequestKind::kResolve);
  order.ipv4 = 0x0a090002;
  const auto until = Clock::now() + std::chrono::seconds(10);
  int result = -EAGAIN;
  while (result == -EAGAIN && Clock::now() < until) {
    result = honest.ask(order);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(result, 0);
  measured.stop("strangers");
  // They were active all the time.
  for (const auto& program : programs) {
    program->signal(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL) << program->output();
  }
  EXPECT_EQ(here.end(), "");
}

// ---- deaths

// The kernel frees gigabytes of theirs at once, and workers of stpd unmap as much.
TEST_F(UnderAttack, ADeathAtAllQuotasStallsNobody) {
  const auto tally = until_quick([&] {
    std::vector<std::unique_ptr<test::Program>> programs;
    for (const auto uid : {kFirst, kSecond, kThird}) {
      programs.push_back(attack({"hoard", uid}, 1.0));
      EXPECT_TRUE(started_) << programs.back()->output();
      outputs_ += programs.back()->output();
    }
    start_measuring();
    for (auto& program : programs) {
      program->signal(SIGKILL);
      program->wait();
    }
    // Waits until stpd has freed everything of them.
    EXPECT_EQ(daemon->returns_to(before), "") << outputs_;
    return measured_->stop("the deaths of three hoarders");
  });
  check(tally);
}

TEST_F(UnderAttack, SigtermWhileClientsAreAtAllQuotas) {
  const auto hoarder = attack({"hoard", kFirst}, 1.0);
  ASSERT_TRUE(started_) << hoarder->output();
  EXPECT_EQ(daemon->end(), "") << hoarder->output();
}

}  // namespace
}  // namespace stp::hostile
