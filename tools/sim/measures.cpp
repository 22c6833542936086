// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/simulation.h"

#include <algorithm>

#include "tools/sim/live_bytes.h"

namespace stp::sim {
namespace {

constexpr std::uint64_t kLength = 1 << 20;
constexpr Time kHop = 2 * kMicrosecond;
constexpr unsigned kBufsize = 14, kMaxStu = 13;

HostConfig host(unsigned number) {
  HostConfig h;
  h.node.mac = MacAddr::from_u64(0x020000000001 + number);
  h.node.max_stu = kMaxStu;
  h.node.attach_from = 1024;
  h.endpoint.bufsize = kBufsize;
  h.endpoint.recover = true;
  return h;
}

// Long Writes to one host, which begin at `start`: all connections are established by then.
struct Bulk {
  std::uint64_t length;
  unsigned max_block;
  std::uint64_t bits_per_second;
  Time start;
};
Scenario bulk(const Bulk& what, std::vector<Time>& finished) {
  Scenario s;
  s.link = {what.bits_per_second, kHop};
  s.to_one = true;
  s.workload.kind = Workload::Kind::kBulk;
  s.workload.at_once = 1;
  s.workload.longest = 1;
  s.workload.max_block = what.max_block;
  s.workload.bulk = {what.length, std::make_shared<Memory>(what.length),
                     std::make_shared<Memory>(what.length), what.start, &finished};
  fill_pattern(s.workload.bulk.source->all(), 1);
  return s;
}

constexpr std::uint64_t kBitsPerSecond = 100'000'000'000;
constexpr std::size_t kPortBuffer = 256 << 10;
constexpr Time kStart = kSecond + 50 * kMillisecond;

Scenario incast(unsigned senders, std::uint64_t granted_limit, bool routed,
                std::vector<Time>& finished) {
  auto s = bulk({kLength, 15, kBitsPerSecond, kStart}, finished);
  for (unsigned i = 0; i <= senders; ++i) {
    s.hosts.push_back(host(i));
    s.hosts.back().node.routed = routed;
    s.hosts.back().node.granted_limit = i == 0 ? granted_limit : 0;
  }
  s.switch_buffer = kPortBuffer;
  s.pairs = senders;
  return s;
}

}  // namespace

std::uint64_t incast_limit() {
  constexpr std::uint64_t kRoundTrip = 4 * kHop + 2 * kMicrosecond;  // four hops and a few frames
  return std::min<std::uint64_t>(3 * kBitsPerSecond / 8 * kRoundTrip / kSecond / 2,
                                 kPortBuffer * 7 / 8);
}

IncastResult play_incast(unsigned senders, std::uint64_t granted_limit, bool routed,
                         std::uint64_t granted_most) {
  Run run{{}, {nullptr, nullptr}, {}, Dice(senders)};
  std::vector<Time> finished;
  auto scenario = incast(senders, granted_limit, routed, finished);
  scenario.hosts.front().node.granted_most = granted_most;
  World world(run, scenario);
  world.play();
  IncastResult result;
  result.passed = !run.verdict.guilty() && finished.size() == senders;
  result.drops = run.trace.overflows();
  if (!result.passed) return result;
  const auto took =
      static_cast<double>(*std::max_element(finished.begin(), finished.end()) - kStart);
  const auto bits = static_cast<double>(senders * kLength * 8);
  const auto ideal = bits / static_cast<double>(kBitsPerSecond) * static_cast<double>(kSecond);
  result.line_rate = ideal / took;
  result.worst_finish = took / ideal;
  return result;
}

namespace {

constexpr Time kLossyStart = kSecond + 500 * kMillisecond;

Scenario long_writes(const Faults& faults, std::uint64_t length, std::vector<Time>& finished) {
  auto s = bulk({length, 20, 10'000'000'000, kLossyStart}, finished);
  s.hosts = {host(0), host(1)};
  s.faults = faults;
  return s;
}

}  // namespace

LossyResult play_lossy(const Faults& faults, std::uint64_t seed,
                       const HostConfig::Pauses& of_receiver, const HostConfig::Pauses& of_sender) {
  Run run{{}, {nullptr, nullptr}, {}, Dice(seed)};
  std::vector<Time> finished;
  auto scenario = long_writes(faults, kLossyLength, finished);
  scenario.hosts[0].pauses = of_receiver;
  scenario.hosts[1].pauses = of_sender;
  World world(run, scenario);
  world.play();
  LossyResult result;
  result.passed = !run.verdict.guilty() && finished.size() == 1;
  result.bytes = run.trace.bytes();
  if (!result.passed) return result;
  const auto took = static_cast<double>(finished[0] - kLossyStart) / static_cast<double>(kSecond);
  result.goodput = static_cast<double>(8 * kLossyLength) / took;
  return result;
}

StreamResult play_stream(const Faults& faults, std::uint64_t seed) {
  constexpr std::uint64_t kBitRate = 20'000'000'000;
  constexpr unsigned kWrites = 100, kAtOnce = 16;
  Run run{{}, {nullptr, nullptr}, {}, Dice(seed)};
  std::vector<Time> finished;
  auto scenario = long_writes(faults, kLength, finished);
  scenario.link = {kBitRate, 6 * kMicrosecond};
  scenario.workload.at_once = kAtOnce;
  scenario.workload.bulk.writes = kWrites;
  World world(run, scenario);
  world.play();
  StreamResult result;
  result.passed = !run.verdict.guilty() && finished.size() == kWrites;
  if (!result.passed) return result;
  result.frames = static_cast<double>(run.trace.frames()) / kWrites;
  result.bytes = static_cast<double>(run.trace.bytes()) / kWrites;
  const auto took = static_cast<double>(finished.back() - kLossyStart);
  result.goodput = 8.0 * kWrites * kLength / took * static_cast<double>(kSecond);
  return result;
}

namespace {

constexpr Time kPause = 60 * kSecond;  // the longest pause between two sessions
constexpr Rate kPercent = kAlways / 100;

Scenario soak(Time span, Dice& dice) {
  auto s = draw_scenario(*find_profile("clean"), dice);
  s.hosts.resize(2);
  s.pairs = 1;
  s.cycles = static_cast<unsigned>(span / (kPause / 2));
  s.pause = kPause;
  s.faults = {
      .loss = kPercent, .duplicate = kPercent, .reorder = kPercent, .reorder_by = kMillisecond};
  return s;
}

}  // namespace

SoakResult play_soak(Time span, std::uint64_t seed) {
  Dice dice(seed);
  auto scenario = soak(span, dice);
  SoakResult result;
  std::vector<std::size_t> heap;
  heap.reserve(scenario.cycles);
  scenario.session_over = [&] { heap.push_back(test::live_bytes()); };
  auto played = simulate(scenario, dice);
  result.failures = std::move(played.failures);
  result.simulated = played.simulated;
  result.frames = played.frames;
  result.sessions = heap.size();
  const auto quarter = static_cast<std::ptrdiff_t>(heap.size() / 4);
  if (quarter == 0) return result;
  result.early = *std::max_element(heap.begin() + quarter, heap.begin() + 2 * quarter);
  result.late = *std::max_element(heap.end() - quarter, heap.end());
  if (result.late > result.early + kSoakSlack)
    result.failures.push_back("memory grows with the number of sessions");
  return result;
}

}  // namespace stp::sim
