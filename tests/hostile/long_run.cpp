// SPDX-License-Identifier: BSD-3-Clause
// Two honest pairs beside eight clients of three users. First the clients obey the rules and yield
// the processor while they wait; then they only use CPU time, as hostile clients do; then they are
// hostile, for ten minutes. The pairs' round trips (p99) beside the hostile clients may take three
// times as long as beside the second kind, which uses as much CPU time. Nothing may be lost. Each
// time the hostile clients have ended, stpd must hold as many descriptors as before, and its memory
// must not grow any more once it has seen every move.
//
// STP_LONG=1 hostile_long. STP_HOSTILE_SECONDS: the duration of the hostile part, 600 by default.
// STP_HOSTILE_CONTROL_SECONDS: that of each of the other two, by default a fifth of it.
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
#include "tests/stpd/program.h"

namespace stp::hostile {
namespace {

constexpr std::size_t kClients = 8;
constexpr std::array<uid_t, 3> kUsers{65'530, 65'531, 65'532};
constexpr uid_t kHonest = 65'533;
constexpr double kFactor = 3;
constexpr std::size_t kFewTrips = 100;
// The duration of a turn: at most ten seconds, and less if needed so that each move has several
// turns.
constexpr auto kLongestTurn = std::chrono::seconds(10);
constexpr auto kShortestTurn = std::chrono::seconds(1);
constexpr int kTurns = 60;
// The allowed growth of resident memory from the first half of the turns to the second: the
// allocator keeps a varying amount of freed memory.
constexpr std::size_t kSettled = std::size_t{4} << 20;
// The last two moves are killed when their time is over.
constexpr std::array kMoves{"refill", "stream", "spoil", "holes", "sharing", "descriptors",
                            "noise",  "deaf",   "forge", "hoard", "mappings"};

enum class Neighbours : std::uint8_t { kPolite, kBurning, kHostile };

const char* name_of(Neighbours who) {
  if (who == Neighbours::kHostile) return "hostile";
  return who == Neighbours::kPolite ? "honest" : "processor-burning";
}

class LongRun {
 public:
  LongRun(std::chrono::seconds length, std::chrono::seconds control)
      : length_(length), control_(control) {}

  int run() {
    if (!daemon_.ready()) return complain("stpd does not start:\n" + daemon_.log());
    const bool root = ::geteuid() == 0;
    for (std::uint32_t i = 0; i < 2; ++i)
      pairs_.push_back(std::make_unique<HonestPair>(daemon_.socket(), 3'000 + i,
                                                    root ? std::optional(kHonest) : std::nullopt));
    for (const auto& pair : pairs_)
      if (!pair->fault().empty()) return complain("an honest pair: " + pair->fault());
    const auto polite = beside(control_, Neighbours::kPolite);
    const auto burning = beside(control_, Neighbours::kBurning);
    before_ = daemon_.usage();
    const auto attacked = beside(length_, Neighbours::kHostile);
    const auto left = daemon_.returns_to(before_);
    if (!polite.fault.empty()) return complain("beside honest clients: " + polite.fault);
    if (!burning.fault.empty()) return complain("beside busy processors: " + burning.fault);
    if (!attacked.fault.empty()) return complain("beside hostile clients: " + attacked.fault);
    if (!breach_.empty()) return complain(breach_);
    if (!left.empty()) return complain("stpd holds more than before: " + left);
    if (std::min(attacked.trip_times.microseconds.size(), burning.trip_times.microseconds.size()) <
        kFewTrips)
      return complain("too few round trips to compare");
    const auto worse = attacked.trip_times.percentile(0.99) / burning.trip_times.percentile(0.99);
    std::printf(
        "p99 beside hostile clients: %.2f times that beside busy processors, %.2f times "
        "that beside honest clients\n",
        worse, attacked.trip_times.percentile(0.99) / polite.trip_times.percentile(0.99));
    const auto daemon = judge_daemon();
    if (worse > kFactor) return complain("round trips take more than three times as long");
    return daemon;
  }

 private:
  // Called while only the honest pairs are connected.
  void look_at_daemon() {
    const auto held = daemon_.returns_to(before_);
    if (held_.empty()) held_ = held;
    residents_.push_back(daemon_.usage().resident);
  }
  [[nodiscard]] std::size_t most_resident(std::size_t from, std::size_t to) const {
    std::size_t most = 0;
    for (auto i = from; i < to; ++i) most = std::max(most, residents_[i]);
    return most;
  }
  int judge_daemon() {
    const auto after = daemon_.usage();
    const auto first = most_resident(0, residents_.size() / 2);
    const auto second = most_resident(residents_.size() / 2, residents_.size());
    std::printf(
        "resident %zu KiB before, %zu KiB after, at most %zu KiB in the first half of %zu "
        "turns and %zu KiB in the second; files %zu, %zu\n",
        before_.resident / 1'024, after.resident / 1'024, first / 1'024, residents_.size(),
        second / 1'024, before_.files, after.files);
    std::printf("watchdog: silent for %lld ms at most\n",
                static_cast<long long>(daemon_.longest_silence().count()));
    if (!held_.empty()) return complain("stpd holds more after a turn: " + held_);
    if (second > first + kSettled) return complain("stpd's memory goes on growing");
    if (const auto how = daemon_.end(); !how.empty()) return complain("stpd: " + how);
    return 0;
  }
  static int complain(const std::string& why) {
    std::printf("FAILED: %s\n", why.c_str());
    return 1;
  }

  std::unique_ptr<test::Program> start(std::size_t place, Neighbours who,
                                       std::chrono::seconds time) {
    const auto* const move = who == Neighbours::kHostile  ? kMoves[next_++ % kMoves.size()]
                             : who == Neighbours::kPolite ? "busy"
                                                          : "spin";
    std::vector<std::string> arguments{HOSTILE_ATTACKER, move,
                                       daemon_.socket(), std::to_string(time.count()),
                                       "--uport",        std::to_string(20'000 + 64 * place),
                                       "--seed",         std::to_string(next_)};
    if (::geteuid() == 0)
      arguments.insert(arguments.end(), {"--uid", std::to_string(kUsers[place % kUsers.size()])});
    return std::make_unique<test::Program>(arguments);
  }

  // Runs both pairs beside eight other clients that start and end.
  Tally beside(std::chrono::seconds length, Neighbours who) {
    for (const auto& pair : pairs_) pair->start();
    const auto until = Clock::now() + length;
    while (Clock::now() < until) {
      const auto left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
      turn(std::min({kLongestTurn, std::max(length_ / kTurns, kShortestTurn), left}), who);
      if (who == Neighbours::kHostile) look_at_daemon();
    }
    const auto both = together();
    print(name_of(who), both);
    return both;
  }

  // Measures only while the others run: many fast round trips between the turns would hide the few
  // slow ones.
  void turn(std::chrono::seconds time, Neighbours who) {
    std::array<std::unique_ptr<test::Program>, kClients> others;
    for (std::size_t i = 0; i < kClients; ++i) others[i] = start(i, who, time);
    for (const auto& pair : pairs_) pair->measure(true);
    std::this_thread::sleep_for(time);
    for (const auto& pair : pairs_) pair->measure(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (auto& other : others) {
      // Clients that do not end by themselves are killed while they hold everything.
      if (who == Neighbours::kHostile) other->signal(SIGKILL);
      const auto status = other->wait();
      if (status == 3 && breach_.empty()) breach_ = other->output();
      other.reset();
    }
  }

  Tally together() {
    Tally both;
    for (const auto& pair : pairs_) {
      const auto tally = pair->stop();
      both.trips += tally.trips;
      both.transfers += tally.transfers;
      both.trip_times.add(tally.trip_times);
      both.answer_times.add(tally.answer_times);
      if (both.fault.empty()) both.fault = tally.fault;
    }
    return both;
  }

  static void print(const char* who, const Tally& tally) {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    std::printf("beside %s clients: %llu round trips, %zu measured, %llu transfers; ", who,
                static_cast<unsigned long long>(tally.trips), tally.trip_times.microseconds.size(),
                static_cast<unsigned long long>(tally.transfers));
    std::printf("median %.0f us, p99 %.0f us, longest %.1f ms; longest answer %.1f ms\n",
                tally.trip_times.percentile(0.5), tally.trip_times.percentile(0.99),
                Milliseconds(tally.trip_times.longest).count(),
                Milliseconds(tally.answer_times.longest).count());
    std::fflush(stdout);
  }

  const std::chrono::seconds length_, control_;
  Daemon daemon_;
  std::vector<std::unique_ptr<HonestPair>> pairs_;
  std::size_t next_ = 0;
  Usage before_;
  std::vector<std::size_t> residents_;
  std::string breach_, held_;
};

}  // namespace
}  // namespace stp::hostile

namespace {

std::chrono::seconds seconds_of(const char* variable, int usual) {
  const auto* const given = std::getenv(variable);
  return std::chrono::seconds(given == nullptr ? usual : std::max(1, std::atoi(given)));
}

}  // namespace

int main() {
  constexpr int kSkipped = 77, kUsual = 600, kLeast = 5;
  if (std::getenv("STP_LONG") == nullptr) {
    std::printf("SKIPPED: it takes fourteen minutes: tools/test --long\n");
    return kSkipped;
  }
  if (::geteuid() != 0) std::printf("not root: all clients are of one user\n");
  const auto length = seconds_of("STP_HOSTILE_SECONDS", kUsual);
  const auto fifth = std::max(static_cast<int>(length.count()) / 5, kLeast);
  return stp::hostile::LongRun(length, seconds_of("STP_HOSTILE_CONTROL_SECONDS", fifth)).run();
}
