// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/simulation.h"

#include <algorithm>
#include <array>

#include "stp/wire/layout.h"
#include "stp/wire/padding.h"

namespace stp::sim {
namespace {

constexpr std::size_t kKilobyte = 1 << 10;

constexpr Rate percent(unsigned n) {
  return n * (kAlways / 100);
}

// What every run draws before its profile changes it: sizes, speeds, a few sessions.
Scenario draw_common(Dice& dice) {
  Scenario s;
  constexpr std::array<std::uint64_t, 4> kGigabits{1, 10, 25, 100};
  s.link.bits_per_second = kGigabits[dice.below(kGigabits.size())] * 1'000'000'000;
  s.link.latency = dice.magnitude(500, 200 * kMicrosecond);
  s.pairs = static_cast<unsigned>(dice.between(1, 3));
  s.cycles = static_cast<unsigned>(dice.between(1, 2));
  s.workload.operations = static_cast<unsigned>(dice.between(2, 12));
  s.workload.longest = dice.magnitude(1 << 10, 32 << 10);
  s.workload.at_once = static_cast<unsigned>(dice.between(1, 6));
  s.workload.max_block = static_cast<unsigned>(dice.between(9, 15));
  s.workload.kind = Workload::Kind::kManaged;
  s.workload.refusals = percent(3);
  s.workload.cancels = percent(2);
  return s;
}

HostConfig draw_host(unsigned number, Dice& dice) {
  HostConfig h;
  h.node.mac = MacAddr{
      {2, 0, 0, 0, static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number + 1)}};
  h.node.max_stu = static_cast<unsigned>(dice.between(8, 13));
  h.node.attach_from = dice.chance(percent(50)) ? dice.between(64, 1024) : std::size_t{1} << 17;
  h.never_idle = dice.chance(percent(20));
  if (dice.chance(percent(10))) h.node.vlan = static_cast<std::uint16_t>(dice.between(1, 4094));
  if (dice.chance(percent(10))) h.node.granted_limit = dice.magnitude(1 << 10, 1 << 16);
  auto& e = h.endpoint;
  e.bufsize = static_cast<unsigned>(dice.between(8, 16));
  e.max_stu = static_cast<unsigned>(dice.between(8, 16));
  e.rx_bufx_base = static_cast<std::uint32_t>(dice.below(1 << 20));
  e.tx_bufx_base = static_cast<std::uint32_t>(dice.below(1 << 20));
  e.rx_bufx_count = e.tx_bufx_count = 1 << 20;
  e.slots = static_cast<std::uint32_t>(dice.magnitude(4, 128));
  e.credits = static_cast<std::uint32_t>(dice.magnitude(2, 128));
  e.checksum = dice.chance(percent(30));
  e.recover = true;
  // As in the managed layer, whose programs say how long they wait: of eight tries each may be
  // lost.
  e.connect_patience = 10 * kSecond;
  return h;
}

void add_hosts(Scenario& s, std::size_t count, Dice& dice) {
  while (s.hosts.size() < count)
    s.hosts.push_back(draw_host(static_cast<unsigned>(s.hosts.size()), dice));
}

Time round_trip(const Scenario& s) {
  return 4 * s.link.latency + 20 * kMicrosecond;
}

// --- faults that leave connections alive

void clean(Scenario&, Dice&) {}
void loss(Scenario& s, Dice& dice) {
  s.faults.loss = static_cast<Rate>(dice.magnitude(percent(1) / 10, percent(10)));
}
void burst(Scenario& s, Dice& dice) {
  s.faults.burst = static_cast<Rate>(dice.magnitude(percent(1) / 10, percent(1)));
  s.faults.burst_length = dice.magnitude(10 * kMicrosecond, 20 * kMillisecond);
}
void duplicate(Scenario& s, Dice& dice) {
  s.faults.duplicate = static_cast<Rate>(dice.between(percent(1), percent(30)));
}
void reorder(Scenario& s, Dice& dice) {
  s.faults.reorder = static_cast<Rate>(dice.between(percent(1), percent(30)));
  s.faults.reorder_by = dice.magnitude(kMicrosecond, 2 * round_trip(s));
}
void delay(Scenario& s, Dice& dice) {
  s.faults.delay = static_cast<Rate>(dice.magnitude(percent(1) / 10, percent(5)));
  s.faults.delay_by = dice.magnitude(100 * kMicrosecond, 300 * kMillisecond);
}
void corrupt(Scenario& s, Dice& dice) {
  s.faults.corrupt = static_cast<Rate>(dice.magnitude(percent(1) / 10, percent(10)));
  for (auto& host : s.hosts) host.endpoint.checksum = true;
}
void mixed(Scenario& s, Dice& dice) {
  s.faults.loss = percent(10);
  s.faults.reorder = percent(10);
  s.faults.reorder_by = dice.magnitude(kMicrosecond, 2 * round_trip(s));
  s.faults.duplicate = percent(5);
}
void slow(Scenario& s, Dice& dice) {
  for (auto& host : s.hosts) {
    host.reaction = dice.magnitude(10 * kMicrosecond, 20 * kMillisecond);
    host.endpoint.slots = static_cast<std::uint32_t>(dice.between(1, 8));
  }
}
void busy(Scenario& s, Dice& dice) {
  for (auto& host : s.hosts)
    host.pauses = {static_cast<unsigned>(dice.between(1, 10)),
                   dice.magnitude(10 * kMicrosecond, 10 * kMillisecond), 10 * kMillisecond,
                   200 * kMillisecond};
  if (dice.chance(percent(30))) loss(s, dice);
}
void small_buffers(Scenario& s, Dice& dice) {
  add_hosts(s, dice.between(3, 5), dice);
  s.pairs = static_cast<unsigned>(dice.between(2, 6));
  s.to_one = true;
  s.switch_buffer = dice.between(10 << 10, 64 << 10);
}
void many_vcs(Scenario& s, Dice& dice) {
  add_hosts(s, dice.between(2, 4), dice);
  s.pairs = static_cast<unsigned>(dice.between(20, 100));
  s.workload.operations = static_cast<unsigned>(dice.between(1, 4));
  s.workload.longest = 4 << 10;
  s.workload.at_once = 2;
}

// Up to 100,000 frames a second in all, which must not end any connection.
void flood(Scenario& s, Dice& dice) {
  s.flood_every = dice.magnitude(10 * kMicrosecond, kMillisecond);
  if (dice.chance(percent(30))) loss(s, dice);
}

// Ways that lose what is longer than they carry, of Nodes that find out what they carry. Some
// Nodes are older, where that does no harm. A user may see the first of two connections end, where
// the way back is shorter, or seems to be.
// protocol: 13.20
void short_ways(Scenario& s, Dice& dice) {
  const auto draw_length = [&dice] {
    return wire::kEthernetSize + wire::padded_length(static_cast<unsigned>(dice.between(8, 13))) +
           dice.below(200);
  };
  for (auto& host : s.hosts) {
    host.node.padded_requests = true;
    host.node.vlan.reset();
    host.longest_out = draw_length();
    host.longest_in = dice.chance(percent(60)) ? host.longest_out : draw_length();
    s.reliable = s.reliable && host.longest_in == host.longest_out;
  }
  if (dice.chance(percent(20))) {
    auto& older = s.hosts[dice.below(s.hosts.size())];
    for (auto& host : s.hosts) host.longest_in = host.longest_out = ~std::size_t{0};
    older.node.padded_requests = false;
  }
  if (dice.chance(percent(30))) loss(s, dice);
  if (dice.chance(percent(20))) reorder(s, dice);
  if (dice.chance(percent(20))) duplicate(s, dice);
  s.reliable = s.reliable && s.faults.loss == 0 && s.faults.reorder == 0;
}

// --- faults that may end connections

void partition(Scenario& s, Dice& dice) {
  s.reliable = false;
  s.cycles = 3;
  for (auto count = dice.between(1, 3); count > 0; --count)
    s.outages.push_back({dice.below(s.hosts.size()), dice.magnitude(kMicrosecond, kSecond),
                         dice.magnitude(100 * kMicrosecond, 30 * kSecond), false});
}
void reboot(Scenario& s, Dice& dice) {
  s.reliable = false;
  s.cycles = 3;
  for (auto count = dice.between(1, 3); count > 0; --count)
    s.outages.push_back({dice.below(s.hosts.size()),
                         dice.magnitude(kMicrosecond, 20 * kMillisecond),
                         dice.magnitude(kMicrosecond, 5 * kSecond), true});
  if (dice.chance(percent(30))) loss(s, dice);
}
void abrupt(Scenario& s, Dice& dice) {
  s.reliable = false;
  s.cycles = 4;
  s.workload.abrupt = percent(70);
  if (dice.chance(percent(50))) loss(s, dice);
  if (dice.chance(percent(30))) duplicate(s, dice);
  if (dice.chance(percent(30))) reorder(s, dice);
}
void liar(Scenario& s, Dice& dice) {
  s.reliable = false;
  add_hosts(s, 3, dice);
  s.pairs = 4;
  s.hosts[dice.below(s.hosts.size())].lies =
      static_cast<Rate>(dice.magnitude(percent(1), percent(50)));
}

// --- a Transfer of more than 2^32 bytes, in memory that is mapped repeatedly

void huge(Scenario& s, Dice& dice) {
  constexpr std::size_t kMemory = std::size_t{64} << 20;
  s.pairs = s.cycles = 1;
  for (auto& host : s.hosts) {
    host.node.max_stu = host.endpoint.max_stu = wire::kMaxMaxStu;
    host.node.attach_from = kKilobyte;
    host.endpoint.bufsize = static_cast<unsigned>(dice.between(18, 25));
    host.endpoint.checksum = false;
    host.node.granted_limit = 0;
  }
  s.link = {100'000'000'000, kMicrosecond};
  s.faults.loss = 50;
  s.workload.kind = Workload::Kind::kBulk;
  s.workload.longest = kKilobyte;
  s.workload.at_once = 1;
  s.workload.max_block = static_cast<unsigned>(dice.between(22, 31));
  s.workload.bulk = {(std::uint64_t{1} << 32) + dice.between(1, 1 << 20),
                     std::make_shared<Memory>(kMemory), std::make_shared<Memory>(kMemory), 0,
                     nullptr};
  fill_pattern(s.workload.bulk.source->all(), 1);
}

// --- level 0

void level0(Scenario& s, Dice& dice) {
  s.workload.kind = Workload::Kind::kLevel0;
  using Draw = void (*)(Scenario&, Dice&);
  constexpr std::array<Draw, 12> kAny{clean,   loss,  burst, duplicate,     reorder,   delay,
                                      corrupt, mixed, slow,  small_buffers, partition, reboot};
  kAny[dice.below(kAny.size())](s, dice);
}

// --- without connections

void connectionless(Scenario& s, Dice& dice) {
  using Draw = void (*)(Scenario&, Dice&);
  constexpr std::array<Draw, 14> kAny{clean,     loss,    burst,  duplicate, reorder,
                                      delay,     corrupt, mixed,  slow,      small_buffers,
                                      partition, reboot,  abrupt, liar};
  kAny[dice.below(kAny.size())](s, dice);
  s.workload.kind = Workload::Kind::kConnectionless;
  s.workload.operations = static_cast<unsigned>(dice.between(2, 40));
  // These Blocks are not paced: one that is longer than the switch's buffer, with its headers,
  // could never arrive.
  s.switch_buffer = std::max(s.switch_buffer, 2 * s.workload.longest);
  // Without a connection sizes are not negotiated: programs agree on them like on Ports and Keys.
  const auto& first = s.hosts.front();
  for (auto& host : s.hosts) {
    host.node.max_stu = first.node.max_stu;
    host.endpoint.max_stu = first.endpoint.max_stu;
    host.endpoint.bufsize = first.endpoint.bufsize;
  }
}

constexpr std::array kProfiles{
    Profile{"clean", "nothing goes wrong", clean},
    Profile{"loss", "0.1% to 10% of the frames are lost", loss},
    Profile{"burst", "frames are lost in bursts", burst},
    Profile{"duplicate", "1% to 30% of the frames come twice", duplicate},
    Profile{"reorder", "1% to 30% of the frames fall behind", reorder},
    Profile{"delay", "the link stalls, longer than timers wait", delay},
    Profile{"corrupt", "bytes change on the way; checksums are on", corrupt},
    Profile{"mixed", "10% loss, 10% reordering and 5% duplication", mixed, 2},
    Profile{"partition", "cables are unplugged for up to 30 s", partition},
    Profile{"reboot", "hosts forget everything and come back", reboot},
    Profile{"abrupt", "connections are closed in the middle of everything", abrupt},
    Profile{"liar", "one host sends what the protocol forbids", liar, 2},
    Profile{"slow", "programs that look at their connection late, with few Slots", slow},
    Profile{"busy", "hosts that are not scheduled for 10 to 200 ms", busy},
    Profile{"small-buffers", "several senders through a switch with little room", small_buffers},
    Profile{"many-vcs", "up to 100 connections at once", many_vcs},
    Profile{"flood", "requests to connect from addresses that nobody has", flood},
    Profile{"short-ways", "ways that lose what is longer than they carry", short_ways},
    Profile{"huge", "a Transfer of more than 4 GiB", huge, 0},
    Profile{"level0", "RTS, CTS and DATA written by hand, under any of the above", level0, 2},
    Profile{"connectionless", "Blocks between endpoints without a peer, under any of the above",
            connectionless, 2},
};

}  // namespace

std::span<const Profile> profiles() {
  return kProfiles;
}

const Profile* find_profile(const std::string& name) {
  const auto* const found = std::find_if(kProfiles.begin(), kProfiles.end(),
                                         [&](const Profile& p) { return p.name == name; });
  return found == kProfiles.end() ? nullptr : found;
}

Scenario draw_scenario(const Profile& profile, Dice& dice) {
  auto s = draw_common(dice);
  add_hosts(s, dice.between(2, 3), dice);
  profile.draw(s, dice);
  return s;
}

}  // namespace stp::sim
