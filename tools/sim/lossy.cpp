// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/lossy.h"

#include "tools/sim/world.h"

namespace stp::sim {
namespace {

constexpr std::uint64_t kLossyBitsPerSecond = 10'000'000'000;
constexpr Time kLossyHop = 2 * kMicrosecond;
constexpr Time kLossyStart = kSecond + 500 * kMillisecond;  // the connection is established by then
constexpr unsigned kLossyBufsize = 14, kLossyMaxStu = 13, kLossyMaxBlock = 20;

HostConfig host(unsigned number) {
  HostConfig h;
  h.node.mac = MacAddr::from_u64(0x020000000001 + number);
  h.node.max_stu = kLossyMaxStu;
  h.node.attach_from = 1024;
  h.endpoint.bufsize = kLossyBufsize;
  h.endpoint.recover = true;
  return h;
}

Scenario long_write(const Faults& faults, std::vector<Time>& finished) {
  Scenario s;
  s.hosts = {host(0), host(1)};
  s.link = {kLossyBitsPerSecond, kLossyHop};
  s.faults = faults;
  s.to_one = true;
  s.workload.kind = Workload::Kind::kBulk;
  s.workload.at_once = 1;
  s.workload.longest = 1;
  s.workload.max_block = kLossyMaxBlock;
  s.workload.bulk = {kLossyLength, std::make_shared<Memory>(kLossyLength),
                     std::make_shared<Memory>(kLossyLength), kLossyStart, &finished};
  fill_pattern(s.workload.bulk.source->all(), 1);
  return s;
}

}  // namespace

LossyResult play_lossy(const Faults& faults, std::uint64_t seed,
                       const HostConfig::Pauses& of_receiver, const HostConfig::Pauses& of_sender) {
  Run run{{}, {nullptr, nullptr}, {}, Dice(seed)};
  std::vector<Time> finished;
  auto scenario = long_write(faults, finished);
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

}  // namespace stp::sim
