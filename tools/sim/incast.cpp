// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/incast.h"

#include <algorithm>

#include "tools/sim/world.h"

namespace stp::sim {
namespace {

constexpr std::uint64_t kLength = 1 << 20;
constexpr std::uint64_t kBitsPerSecond = 100'000'000'000;
constexpr Time kHop = 2 * kMicrosecond;
constexpr std::size_t kPortBuffer = 256 << 10;
constexpr Time kStart = kSecond + 50 * kMillisecond;  // all connections are established by then
constexpr unsigned kBufsize = 14, kMaxStu = 13, kMaxBlock = 15;

HostConfig host(unsigned number, std::uint64_t granted_limit) {
  HostConfig h;
  h.node.mac = MacAddr::from_u64(0x020000000001 + number);
  h.node.max_stu = kMaxStu;
  h.node.attach_from = 1024;
  h.node.granted_limit = granted_limit;
  h.endpoint.bufsize = kBufsize;
  h.endpoint.recover = true;
  return h;
}

Scenario incast(unsigned senders, std::uint64_t granted_limit, std::vector<Time>& finished) {
  Scenario s;
  for (unsigned i = 0; i <= senders; ++i) s.hosts.push_back(host(i, i == 0 ? granted_limit : 0));
  s.link = {kBitsPerSecond, kHop};
  s.switch_buffer = kPortBuffer;
  s.pairs = senders;
  s.to_one = true;
  s.workload.kind = Workload::Kind::kBulk;
  s.workload.at_once = 1;
  s.workload.longest = 1;
  s.workload.max_block = kMaxBlock;
  s.workload.bulk = {kLength, std::make_shared<Memory>(kLength), std::make_shared<Memory>(kLength),
                     kStart, &finished};
  fill_pattern(s.workload.bulk.source->all(), 1);
  return s;
}

}  // namespace

std::uint64_t incast_limit() {
  constexpr std::uint64_t kRoundTrip = 4 * kHop + 2 * kMicrosecond;  // four hops and a few frames
  return std::min<std::uint64_t>(3 * kBitsPerSecond / 8 * kRoundTrip / kSecond / 2,
                                 kPortBuffer * 7 / 8);
}

IncastResult play_incast(unsigned senders, std::uint64_t granted_limit) {
  Run run{{}, {nullptr, nullptr}, {}, Dice(senders)};
  std::vector<Time> finished;
  const auto scenario = incast(senders, granted_limit, finished);
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

}  // namespace stp::sim
