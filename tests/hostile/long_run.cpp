// SPDX-License-Identifier: BSD-3-Clause
// Two honest pairs beside eight clients of three users, first ones that keep the rules and use all
// that they get, then hostile ones for ten minutes. The pairs' round trips may take three times as
// long (p99), nothing is lost, and stpd holds in the end what it held before: looked at each time
// that the hostile ones have gone, its descriptors are as many as they were, and its memory grows
// no more once it has seen every move.
//
// STP_LONG=1 hostile_long; STP_HOSTILE_SECONDS says how long, 600 where it is not set.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/hostile/daemon.h"
#include "tests/hostile/honest.h"
#include "tests/service/program.h"

namespace stp::hostile {
namespace {

constexpr std::size_t kClients = 8;
constexpr std::array<uid_t, 3> kUsers{65'530, 65'531, 65'532};
constexpr uid_t kHonest = 65'533;
constexpr double kFactor = 3;
// Of one move, before the next one's: ten seconds, or less, so that each comes several times.
constexpr auto kLongestTurn = std::chrono::seconds(10);
constexpr auto kShortestTurn = std::chrono::seconds(1);
constexpr int kTurns = 60;
// What the second half of the turns may add to the most that was resident in the first: the
// allocator keeps what was freed in pieces that differ from time to time.
constexpr std::size_t kSettled = std::size_t{4} << 20;
// The last two are killed when their time is over.
constexpr std::array kHostile{"refill", "stream", "spoil", "holes", "sharing", "descriptors",
                              "noise",  "deaf",   "forge", "hoard", "mappings"};

class LongRun {
 public:
  explicit LongRun(std::chrono::seconds length) : length_(length) {}

  int run() {
    if (!daemon_.ready()) return complain("stpd does not start:\n" + daemon_.log());
    bool const root = ::geteuid() == 0;
    for (std::uint32_t i = 0; i < 2; ++i)
      pairs_.push_back(std::make_unique<HonestPair>(daemon_.socket(), 3'000 + i,
                                                    root ? std::optional(kHonest) : std::nullopt));
    for (auto const& pair : pairs_)
      if (!pair->fault().empty()) return complain("an honest pair: " + pair->fault());
    auto const usual = beside(std::max(length_ / 5, std::chrono::seconds(5)), false);
    before_ = daemon_.usage();
    auto const attacked = beside(length_, true);
    auto const left = daemon_.returns_to(before_);
    auto const after = daemon_.usage();
    auto const first = most_resident(0, residents_.size() / 2);
    auto const second = most_resident(residents_.size() / 2, residents_.size());
    std::printf(
        "resident %zu KiB before, %zu KiB after, at most %zu KiB in the first half of %zu turns "
        "and "
        "%zu KiB in the second; files %zu, %zu\n",
        before_.resident / 1'024, after.resident / 1'024, first / 1'024, residents_.size(),
        second / 1'024, before_.files, after.files);
    std::printf("watchdog: silent for %lld ms at most\n",
                static_cast<long long>(daemon_.longest_silence().count()));
    if (!usual.fault.empty()) return complain("beside honest clients: " + usual.fault);
    if (!attacked.fault.empty()) return complain("beside hostile clients: " + attacked.fault);
    if (!breach_.empty()) return complain(breach_);
    if (!left.empty()) return complain("stpd holds more than before: " + left);
    if (!held_.empty()) return complain("stpd holds more after a turn: " + held_);
    if (second > first + kSettled) return complain("stpd's memory goes on growing");
    if (auto const how = daemon_.end(); !how.empty()) return complain("stpd: " + how);
    if (attacked.percentile(0.99) > kFactor * usual.percentile(0.99))
      return complain("round trips take more than three times as long");
    return 0;
  }

 private:
  // Nobody but the honest is there.
  void look_at_daemon() {
    auto const held = daemon_.returns_to(before_);
    if (held_.empty()) held_ = held;
    residents_.push_back(daemon_.usage().resident);
  }
  [[nodiscard]] std::size_t most_resident(std::size_t from, std::size_t to) const {
    std::size_t most = 0;
    for (auto i = from; i < to; ++i) most = std::max(most, residents_[i]);
    return most;
  }
  static int complain(const std::string& why) {
    std::printf("FAILED: %s\n", why.c_str());
    return 1;
  }

  std::unique_ptr<test::Program> start(std::size_t place, bool hostile, std::chrono::seconds time) {
    auto const* const move = hostile ? kHostile[next_++ % kHostile.size()] : "busy";
    std::vector<std::string> arguments{HOSTILE_ATTACKER, move,
                                       daemon_.socket(), std::to_string(time.count()),
                                       "--uport",        std::to_string(20'000 + 64 * place),
                                       "--seed",         std::to_string(next_)};
    if (::geteuid() == 0)
      arguments.insert(arguments.end(), {"--uid", std::to_string(kUsers[place % kUsers.size()])});
    return std::make_unique<test::Program>(arguments);
  }

  // The two pairs together, beside eight others that come and go.
  Tally beside(std::chrono::seconds length, bool hostile) {
    for (auto const& pair : pairs_) pair->start();
    std::array<std::unique_ptr<test::Program>, kClients> others;
    auto const until = Clock::now() + length;
    while (Clock::now() < until) {
      auto const left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
      auto const turn = std::min({kLongestTurn, std::max(length_ / kTurns, kShortestTurn), left});
      for (std::size_t i = 0; i < kClients; ++i) others[i] = start(i, hostile, turn);
      auto const end = Clock::now() + turn + std::chrono::milliseconds(500);
      std::this_thread::sleep_until(end);
      for (auto& other : others) {
        // Whoever goes on is killed at all that it has.
        if (hostile) other->signal(SIGKILL);
        auto const status = other->wait();
        if (status == 3 && breach_.empty()) breach_ = other->output();
        other.reset();
      }
      if (hostile) look_at_daemon();
    }
    Tally both;
    for (auto const& pair : pairs_) {
      auto const tally = pair->stop();
      both.trips += tally.trips;
      both.transfers += tally.transfers;
      both.microseconds.insert(both.microseconds.end(), tally.microseconds.begin(),
                               tally.microseconds.end());
      both.longest_trip = std::max(both.longest_trip, tally.longest_trip);
      both.longest_answer = std::max(both.longest_answer, tally.longest_answer);
      if (both.fault.empty()) both.fault = tally.fault;
    }
    std::printf(
        "beside %s clients: %llu round trips, %llu transfers; median %.0f us, p99 %.0f us, "
        "longest %.1f ms; longest answer %.1f ms\n",
        hostile ? "hostile" : "honest", static_cast<unsigned long long>(both.trips),
        static_cast<unsigned long long>(both.transfers), both.percentile(0.5),
        both.percentile(0.99), std::chrono::duration<double, std::milli>(both.longest_trip).count(),
        std::chrono::duration<double, std::milli>(both.longest_answer).count());
    std::fflush(stdout);
    return both;
  }

  const std::chrono::seconds length_;
  Daemon daemon_;
  std::vector<std::unique_ptr<HonestPair>> pairs_;
  std::size_t next_ = 0;
  Usage before_;
  std::vector<std::size_t> residents_;
  std::string breach_, held_;
};

}  // namespace
}  // namespace stp::hostile

int main() {
  constexpr int kSkipped = 77, kUsual = 600;
  if (std::getenv("STP_LONG") == nullptr) {
    std::printf("SKIPPED: it takes twelve minutes: tools/test --long\n");
    return kSkipped;
  }
  if (::geteuid() != 0) std::printf("not root: all clients are of one user\n");
  auto const* const given = std::getenv("STP_HOSTILE_SECONDS");
  auto const seconds = given == nullptr ? kUsual : std::max(1, std::atoi(given));
  return stp::hostile::LongRun(std::chrono::seconds(seconds)).run();
}
