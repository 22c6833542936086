// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/world.h"

#include <algorithm>

#include "stp/wire/frame.h"
#include "tools/sim/bulk.h"
#include "tools/sim/connectionless.h"
#include "tools/sim/level0.h"
#include "tools/sim/managed.h"

namespace stp::sim {
namespace {

constexpr std::uint64_t kMaxSteps = 50'000'000;  // a run with more makes no progress
constexpr Time kLookEvery = 10 * kMillisecond;
constexpr Time kPatiences = 10;             // limit of a session, in patiences of one operation
constexpr Time kSpread = 2 * kMillisecond;  // within which sessions begin

std::unique_ptr<Session> make_session(Run& run, const SessionConfig& config) {
  switch (config.workload.kind) {
    case Workload::Kind::kLevel0:
      return std::make_unique<Level0Session>(run, config);
    case Workload::Kind::kBulk:
      return std::make_unique<BulkSession>(run, config);
    case Workload::Kind::kConnectionless:
      return std::make_unique<ConnectionlessSession>(run, config);
    default:
      return std::make_unique<ManagedSession>(run, config);
  }
}

bool over(const Party& party) {
  return party.state() == Party::State::kEnded || party.state() == Party::State::kGone;
}

}  // namespace

World::World(Run& run, const Scenario& scenario)
    : run_(run), scenario_(scenario), switch_(run, scenario.switch_buffer) {
  build();
  plan_outages();
  start_pairs();
}

void World::build() {
  for (const auto& config : scenario_.hosts) {
    auto& machine = machines_.emplace_back();
    machine.host = std::make_unique<Host>(
        run_, config, [this](Host& host, End& end, const VcInfo& info) -> Application& {
          return accept(host, end, info);
        });
    auto* const host = machine.host.get();
    machine.uplink =
        std::make_unique<Wire>(run_, scenario_.link, scenario_.faults,
                               [this](Frame frame) { switch_.forward(std::move(frame)); });
    machine.downlink = &switch_.add_port(config.node.mac, scenario_.link, {},
                                         [host](const Frame& frame) { host->receive(frame); });
    host->plug_in(*machine.uplink);
  }
}

void World::plan_outages() {
  for (const auto& outage : scenario_.outages) {
    run_.clock.after(outage.at, [this, &outage] { set_outage(outage, true); });
    run_.clock.after(outage.at + outage.lasts, [this, &outage] { set_outage(outage, false); });
  }
}

void World::set_outage(const Outage& outage, bool begins) {
  auto& machine = machines_[outage.host];
  run_.trace.note(run_.now(), [&] {
    return std::string(outage.reboot ? "host " : "cable of host ") + std::to_string(outage.host) +
           (begins ? " goes down" : " comes back");
  });
  if (!outage.reboot) {
    machine.uplink->cut(begins);
    machine.downlink->cut(begins);
  } else if (begins && machine.host->up()) {
    count(*machine.host);
    machine.host->go_down();
  } else if (!begins && !machine.host->up()) {
    machine.host->boot();
  }
}

void World::start_pairs() {
  const auto hosts = machines_.size();
  for (unsigned i = 0; i < scenario_.pairs; ++i) {
    const auto server = scenario_.to_one ? 0 : run_.dice.below(hosts);
    const auto client =
        scenario_.to_one ? 1 + i % (hosts - 1) : (server + 1 + run_.dice.below(hosts - 1)) % hosts;
    pairs_.push_back({client, server, scenario_.cycles, nullptr, 0, {}, false, true, 0, kNever});
  }
  for (auto& pair : pairs_)
    run_.clock.after(run_.dice.between(0, kSpread), [this, &pair] { begin(pair); });
  run_.clock.after(kLookEvery, [this] { watch(); });
  if (scenario_.flood_every == 0) return;
  flood_dice_ = run_.dice.fork();
  flood();
}

// Sends a Request_Connection with a source address that no host has. It enters at the switch.
void World::flood() {
  const bool sessions = std::any_of(pairs_.begin(), pairs_.end(),
                                    [](const Pair& p) { return p.session || p.cycles_left > 0; });
  if (!sessions) return;
  auto& dice = *flood_dice_;
  const auto& asked = machines_[dice.below(machines_.size())].host->config();
  wire::Header rc;
  rc.op_flags = wire::op_flags(wire::Op::kRequestConnection);
  rc.param = 64;
  rc.s_port = static_cast<std::uint16_t>(dice.between(1, wire::kMaxPort));
  rc.bufx = 14;
  rc.offset = dice.next() | 1;
  rc.sync = 10;
  rc.d_id = kUport;
  const auto nobody = MacAddr::from_u64(std::uint64_t{0x06} << 40 | dice.next64() >> 24);
  Frame frame(256);
  frame.resize(wire::emit({asked.node.mac, nobody, asked.node.vlan}, rc, {}, {}, frame));
  run_.trace.sent(run_.now(), frame);
  switch_.forward(std::move(frame));
  run_.clock.after(scenario_.flood_every, [this] { flood(); });
}

void World::begin(Pair& pair) {
  auto& client = *machines_[pair.client].host;
  pair.honest = !client.lies() && !machines_[pair.server].host->lies();
  const auto later = [&] { run_.clock.after(kSpread, [this, &pair] { begin(pair); }); };
  if (!client.up()) return later();
  const bool connected = scenario_.workload.kind != Workload::Kind::kConnectionless;
  auto& server = *machines_[pair.server].host;
  if (!connected && !server.up()) return later();
  auto session = make_session(run_, {scenario_.workload, ++sessions_, pair.honest});
  if (!connected) {
    client.open_port(session->client());
    server.open_port(session->server());
  } else if (client.connect(server.config().node.mac, session->client(), pair.names) == nullptr) {
    return later();
  }
  pair.session = std::move(session);
  pair.number = sessions_;
  pair.taken = !connected;
  pair.begun = run_.now();
  pair.parted = kNever;
  --pair.cycles_left;
  // With a lying host a session could last forever, so it is always aborted at some time.
  if (!pair.honest || run_.dice.chance(scenario_.workload.abrupt))
    abort_later(pair, run_.dice.magnitude(1, pair.honest ? 10 * kMillisecond : kSecond));
}

void World::abort_later(Pair& pair, Time span) {
  const auto by_client = run_.dice.chance(kAlways / 2);
  run_.clock.after(span, [this, &pair, by_client, number = pair.number] {
    if (!pair.session || pair.number != number) return;  // that session is over
    auto& party = by_client ? pair.session->client() : pair.session->server();
    if (party.state() == Party::State::kWaiting) return abort_later(pair, kSpread);
    party.abort();
  });
}

Application& World::accept(Host& host, End&, const VcInfo& info) {
  for (auto& pair : pairs_)
    if (pair.session && !pair.taken && machines_[pair.server].host.get() == &host &&
        machines_[pair.client].host->config().node.mac == info.peer_mac &&
        pair.names.local_port == info.remote_port && pair.names.local_key == info.remote_key) {
      pair.taken = true;
      return pair.session->server();
    }
  strays_.push_back(std::make_unique<Stray>(run_.now()));
  return *strays_.back();
}

bool World::all_done() const {
  return std::all_of(pairs_.begin(), pairs_.end(),
                     [](const Pair& p) { return !p.session && p.cycles_left == 0; }) &&
         std::all_of(strays_.begin(), strays_.end(), [](const auto& s) { return s->is_gone(); });
}

void World::watch() {
  for (auto& pair : pairs_)
    if (pair.session) look_after(pair);
  for (const auto& stray : strays_)
    if (!stray->is_gone() && run_.now() - stray->since() > scenario_.workload.patience)
      run_.verdict.fail("a connection without another end never ends");
  if (!all_done()) run_.clock.after(kLookEvery, [this] { watch(); });
}

void World::look_after(Pair& pair) {
  const auto now = run_.now();
  const auto patience = scenario_.workload.patience;
  auto &client = pair.session->client(), &server = pair.session->server();
  const bool ends = over(client) || (pair.taken && over(server));
  if (ends && pair.parted == kNever) pair.parted = now;
  if (!pair.taken && client.state() == Party::State::kGone) server.never_came();
  if (client.state() == Party::State::kGone && server.state() == Party::State::kGone)
    return finish(pair);
  if (client.state() == Party::State::kWaiting && now - pair.begun > patience)
    run_.verdict.fail("a connection is neither made nor refused");
  if (pair.parted != kNever && now - pair.parted > patience)
    run_.verdict.fail("a connection has ended at one side only");
  if (now - pair.begun > kPatiences * patience) run_.verdict.fail("a session never ends");
  if (!pair.honest) return;
  if (const auto late = pair.session->overdue(now); !late.empty()) run_.verdict.fail(late);
}

void World::finish(Pair& pair) {
  pair.session->check(scenario_.reliable);
  run_.trace.note(run_.now(), [&] {
    return "session over: client " + std::to_string(pair.session->client().error()) + ", server " +
           std::to_string(pair.session->server().error());
  });
  pair.session.reset();
  if (scenario_.session_over) scenario_.session_over();
  if (pair.cycles_left > 0)
    run_.clock.after(run_.dice.between(0, scenario_.pause), [this, &pair] { begin(pair); });
}

void World::play() {
  while (!run_.verdict.guilty() && run_.clock.step())
    if (run_.clock.steps() > kMaxSteps) run_.verdict.fail("the run never comes to rest");
  if (!run_.verdict.guilty()) retire();
}

void World::count(Host& host) {
  delivered_ += host.node().counters().get(Counter::kRxDataBytes);
  overruns_ += host.node().counters().get(Counter::kSlotOverrun);
  for (const auto again : {Counter::kCtsRepeated, Counter::kDuplicateStu, Counter::kDuplicateBlock})
    repeats_ += host.node().counters().get(again);
}

void World::retire() {
  bool honest = true;
  for (auto& machine : machines_) {
    honest = honest && !machine.host->lies();
    count(*machine.host);
    machine.host->retire();
  }
  if (honest && scenario_.slots_hold())
    run_.verdict.require(overruns_ == 0, "an honest peer overran the Slots of another");
}

}  // namespace stp::sim
