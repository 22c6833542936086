// SPDX-License-Identifier: BSD-3-Clause
// What a hostile program can do with objects that it shares with stpd: descriptors that it sends,
// flags and seals of descriptors that it has received, memory, and children that keep all of it.
#include <csignal>

#include "tests/hostile/control_group.h"
#include "tests/hostile/hostile_fixture.h"

namespace stp::hostile {
namespace {

using SharedUnderAttack = HostileFixture;

TEST_F(SharedUnderAttack, FlagsLocksAndSealsOfWhatIsSharedHurtNobody) {
  withstands({{"sharing", kFirst}, {"sharing", kSecond}}, 1.0);
}

TEST_F(SharedUnderAttack, DescriptorsOfEveryKindAreRefusedAndClosed) {
  withstands({{"descriptors", kFirst}, {"descriptors", kSecond}}, 2.0);
}

TEST_F(SharedUnderAttack, AFileThatNeverClosesHoldsNobodyUp) {
  if (!several_users()) GTEST_SKIP() << "only root may mount";
  const auto tally = until_quick([&] {
    start_measuring();
    // Runs as root, because only the user that mounts may open the file.
    std::vector<std::string> arguments{HOSTILE_ATTACKER, "fuse", daemon->socket(), "4"};
    test::Program program(arguments);
    const auto status = program.wait();
    if (status == 77) skipped_ = program.output();
    EXPECT_TRUE(status == 0 || status == 77) << program.output();
    outputs_ = program.output();
    return measured_->stop("fuse");
  });
  // Answers came while the file was not answered, which was most of four seconds.
  EXPECT_LT(tally.answer_times.longest, std::chrono::seconds(3));
  check(tally);
  if (!skipped_.empty() && !HasFailure()) GTEST_SKIP() << skipped_;
}

TEST_F(SharedUnderAttack, MemoryWithoutPagesIsNotMadeByStpd) {
  const auto tally = endure({{"absent", kFirst, {"--most", "8"}}}, 3.0);
  // A gibibyte each, of which stpd must not have allocated any page.
  EXPECT_LT(daemon->usage().resident, before.resident + (std::size_t{256} << 20));
  check(tally);
}

TEST_F(SharedUnderAttack, AProgramAtTheMemoryLimitOfItsGroupPaysForWhatItLends) {
  constexpr std::uint64_t kLimit = std::uint64_t{48} << 20;
  const ControlGroup group(kLimit);
  if (group.empty()) GTEST_SKIP() << "no control group with a memory limit can be made here";
  const auto program = attack({"lend", kFirst, {"--group", group.members()}}, 3);
  ASSERT_TRUE(started_) << program->output();
  start_measuring();
  // Either the kernel kills it, or it gets no more memory.
  const auto status = program->wait();
  const auto tally = stop_measuring("lend");
  EXPECT_TRUE(status == 0 || status == 128 + SIGKILL) << status << program->output();
  EXPECT_GT(count_of(program->output(), "lent"), 0U) << program->output();
  EXPECT_GT(group.peak(), kLimit / 2) << "its own pages are in its group";
  check(tally);
}

// Gigabytes take long to unmap, and whoever maps something in stpd waits for that.
TEST_F(SharedUnderAttack, AsMuchMemoryAsARequestMayLendHoldsUpNobody) {
  withstands({{"largest", kFirst}, {"largest", kSecond}}, 3.0);
  EXPECT_GT(count_of(outputs_, "lent"), 0U) << outputs_;
}

TEST_F(SharedUnderAttack, AForkedChildKeepsNothingOfAKilledProgram) {
  const auto program = attack({"forked"}, 30);
  ASSERT_TRUE(started_) << program->output();
  const auto child = static_cast<pid_t>(count_of(program->output(), "child"));
  start_measuring();
  program->signal(SIGKILL);
  const auto left = daemon->returns_to(before);
  const auto tally = stop_measuring("forked");
  ASSERT_GT(child, 0);
  EXPECT_EQ(::kill(child, 0), 0);  // it was there all the time
  ::kill(child, SIGKILL);
  EXPECT_EQ(left, "");
  check(tally);
}

}  // namespace
}  // namespace stp::hostile
