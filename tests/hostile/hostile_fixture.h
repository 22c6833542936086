// SPDX-License-Identifier: BSD-3-Clause
// One stpd, one honest pair, and hostile programs beside them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/hostile/daemon.h"
#include "tests/hostile/honest.h"
#include "tests/hostile/measured.h"
#include "tests/stpd/program.h"

namespace stp::hostile {

// Unprivileged users that exist nowhere: one for honest programs, three for hostile ones.
inline constexpr uid_t kHonest = 65'533, kFirst = 65'530, kSecond = 65'531, kThird = 65'532;

struct Hostility {
  std::string move;
  uid_t uid = kFirst;
  std::vector<std::string> more = {};
};

class HostileFixture : public testing::Test {
 protected:
  // stpd's locks are held for less than this, and answers come earlier, even on a loaded machine.
  // Without a bound it would be seconds, or for ever.
  static constexpr auto kLongestTrip = std::chrono::milliseconds(1'500 * kSlowness);
  static constexpr auto kLongestAnswer = std::chrono::milliseconds(2'500 * kSlowness);
  static constexpr auto kLongestSilence = std::chrono::milliseconds(10'000);

  void SetUp() override { start({}); }
  void start(const std::vector<std::string>& options) {
    pair.reset();
    daemon = std::make_unique<Daemon>(options);
    ASSERT_TRUE(daemon->ready()) << daemon->log();
    pair = make_pair(3'000);
    ASSERT_EQ(pair->fault(), "") << daemon->log();
    ASSERT_TRUE(pair->trip() && pair->transfer() && pair->is_answered()) << pair->fault();
    before = daemon->usage();
  }
  static bool several_users() { return ::geteuid() == 0; }
  // Whether other users can reach the socket by its name.
  bool others_reach_it() const {
    for (std::filesystem::path at = daemon->directory(); at != at.root_path();
         at = at.parent_path())
      if ((std::filesystem::status(at).permissions() & std::filesystem::perms::others_exec) ==
          std::filesystem::perms::none)
        return false;
    return true;
  }
  [[nodiscard]] std::unique_ptr<HonestPair> make_pair(std::uint32_t uport) const {
    const auto uid = several_users() && others_reach_it() ? std::optional(kHonest) : std::nullopt;
    return std::make_unique<HonestPair>(daemon->socket(), uport, uid);
  }

  // Starts a hostile program and waits until it is ready.
  std::unique_ptr<test::Program> attack(const Hostility& hostility, double seconds) {
    std::vector<std::string> arguments{HOSTILE_ATTACKER, hostility.move,
                                       daemon->socket(), std::to_string(seconds),
                                       "--uport",        std::to_string(20'000 + 64 * count_++)};
    if (several_users() && others_reach_it())
      arguments.insert(arguments.end(), {"--uid", std::to_string(hostility.uid)});
    arguments.insert(arguments.end(), hostility.more.begin(), hostility.more.end());
    auto program = std::make_unique<test::Program>(arguments);
    started_ = program->says("ready\n");
    return program;
  }
  // Runs the pair, and measures what the hostile programs cost it, until stop_measuring().
  void start_measuring() { measured_ = std::make_unique<Measured>(*pair, *daemon); }
  Tally stop_measuring(const std::string& what) {
    const auto tally = measured_->stop(what);
    EXPECT_EQ(measured_->too_slow(), "")
        << "more than waits for processors, four exchanges of idle threads and 50 ms";
    return tally;
  }
  // Runs `once`, which ends with measured_->stop(). Once more if something took too long: the
  // machine may have been busy with something else just then.
  template <typename Once>
  Tally until_quick(Once&& once) {
    constexpr int kTries = 3;
    for (int i = 1; i < kTries; ++i)
      if (auto tally = once(); measured_->too_slow().empty()) return tally;
    auto tally = once();
    EXPECT_EQ(measured_->too_slow(), "")
        << "more than waits for processors, four exchanges of idle threads and 50 ms";
    return tally;
  }
  // Measures until all hostile programs have ended by themselves.
  Tally endure(const std::vector<Hostility>& all, double seconds) {
    return until_quick([&] { return endure_once(all, seconds); });
  }
  Tally endure_once(const std::vector<Hostility>& all, double seconds) {
    std::vector<std::unique_ptr<test::Program>> programs;
    std::string moves;
    for (const auto& hostility : all) moves += (moves.empty() ? "" : ", ") + hostility.move;
    start_measuring();
    for (const auto& hostility : all) programs.push_back(attack(hostility, seconds));
    for (auto& program : programs) {
      const auto status = program->wait();
      if (status == 77)
        skipped_ = program->output();
      else
        EXPECT_EQ(status, 0) << program->output();
      outputs_ += program->output();
    }
    return measured_->stop(moves);
  }
  // Checks what must hold after any of them.
  void check(const Tally& tally) {
    using std::chrono::duration_cast;
    using std::chrono::milliseconds;
    EXPECT_EQ(tally.fault, "");
    EXPECT_GT(tally.trips, 0U);
    EXPECT_LT(duration_cast<milliseconds>(tally.trip_times.longest).count(), kLongestTrip.count());
    EXPECT_LT(duration_cast<milliseconds>(tally.answer_times.longest).count(),
              kLongestAnswer.count());
    ASSERT_TRUE(daemon->alive()) << daemon->log();
    EXPECT_TRUE(pair->trip() && pair->transfer() && pair->is_answered()) << pair->fault();
    EXPECT_LT(daemon->longest_silence().count(), kLongestSilence.count());
    EXPECT_EQ(daemon->returns_to(before), "") << outputs_;
    EXPECT_EQ(daemon->end(), "");
    RecordProperty("trips", std::to_string(tally.trips));
  }
  // For hostile programs that run for a limited time.
  void withstands(const std::vector<Hostility>& all, double seconds) {
    const auto tally = endure(all, seconds);
    check(tally);
    if (!skipped_.empty() && !HasFailure()) GTEST_SKIP() << skipped_;
  }
  // "NAME=COUNT" of a program's output.
  static std::uint64_t count_of(const std::string& output, const std::string& name) {
    const auto at = output.find(name + "=");
    return at == std::string::npos ? 0 : std::stoull(output.substr(at + name.size() + 1));
  }

  std::unique_ptr<Daemon> daemon;
  std::unique_ptr<HonestPair> pair;
  Usage before;
  bool started_ = false;
  std::string skipped_, outputs_;
  std::unique_ptr<Measured> measured_;  // ends before the pair

 private:
  int count_ = 0;
};

}  // namespace stp::hostile
