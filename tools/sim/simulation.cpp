// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/simulation.h"

#include <algorithm>
#include <string_view>

#include "stp/wire/frame.h"
#include "tools/sim/session.h"

namespace stp::sim {
namespace {

constexpr unsigned kSteerings = 3;
constexpr std::size_t kLastOfSender = 11;  // the last byte of the sender's address
constexpr Time kBell = 200;                // ns, until a Node sees what another one has handed over

}  // namespace

Machine::Machine(Run& run, const HostConfig& config, unsigned nodes, const Host::Accept& accept)
    : run_(run) {
  if (nodes > 1) steering_ = static_cast<Steering>(run.dice.below(kSteerings));
  for (unsigned node = 0; node < nodes; ++node) {
    Host::Place place{node, steering_ == Steering::kOneQueue, [this, node] { wake_others(node); }};
    hosts_.push_back(std::make_unique<Host>(run, config, std::move(place), accept));
  }
  boot();
}

void Machine::plug_in(Wire& wire) {
  uplink_.emplace(wire);
  for (const auto& host : hosts_) host->plug_in(*uplink_);
}

unsigned Machine::queue_of(const Frame& frame) const {
  switch (steering_) {
    case Steering::kByPort:
      return Shards::port_of(frame) % static_cast<unsigned>(hosts_.size());
    case Steering::kBySender:
      return std::to_integer<unsigned>(frame[kLastOfSender]) % static_cast<unsigned>(hosts_.size());
    default:
      return port::Crossing::kOwner;
  }
}

void Machine::receive(const Frame& frame) {
  host(queue_of(frame)).receive(frame);
}

void Machine::wake_others(unsigned node) {
  for (const auto& host : hosts_)
    if (host != hosts_[node]) run_.clock.after(kBell, [at = host.get()] { at->poke(); });
}

void Machine::go_down() {
  for (const auto& host : hosts_) host->go_down();
  crossing_.reset();
}

void Machine::boot() {
  const auto nodes = static_cast<unsigned>(hosts_.size());
  if (nodes > 1) {
    const auto room =
        wire::kMaxHeadSize + (std::size_t{1} << config().node.max_stu) + wire::kAppendSize;
    crossing_ = std::make_shared<port::Crossing>(nodes, room);
  }
  for (const auto& host : hosts_) host->boot(crossing_);
}

void Machine::retire() {
  const auto count = crossing_ ? crossing_->count() : 0;
  for (unsigned from = 0; from < count; ++from)
    for (unsigned to = 0; to < count; ++to)
      run_.verdict.require(crossing_->ring(from, to).waiting() == 0,
                           "a frame for another Node was never taken");
  for (const auto& host : hosts_) host->retire();
}

namespace {

constexpr std::uint64_t kMaxSteps = 50'000'000;  // a run with more makes no progress
constexpr Time kLookEvery = 10 * kMillisecond;
constexpr Time kPatiences = 10;             // limit of a session, in patiences of one operation
constexpr Time kSpread = 2 * kMillisecond;  // within which sessions begin

std::unique_ptr<Session> make_session(Run& run, const SessionConfig& config) {
  switch (config.workload.kind) {
    case Workload::Kind::kLevel0:
      return level0_session(run, config);
    case Workload::Kind::kBulk:
      return bulk_session(run, config);
    case Workload::Kind::kConnectionless:
      return connectionless_session(run, config);
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
  if (scenario.bottleneck) bottleneck_.emplace(run, *scenario.bottleneck);
  build();
  plan_outages();
  start_pairs();
}

void World::build() {
  for (const auto& config : scenario_.hosts) {
    auto& station = stations_.emplace_back();
    station.machine =
        std::make_unique<Machine>(run_, config, scenario_.nodes,
                                  [this](Host& host, End& end, const VcInfo& info) -> Application& {
                                    return accept(host, end, info);
                                  });
    auto* const machine = station.machine.get();
    auto faults = scenario_.faults;
    faults.longest = config.longest_out;
    station.uplink = std::make_unique<Wire>(
        run_, scenario_.link, faults,
        [this, from = stations_.size() - 1](Frame frame) { forward(from, std::move(frame)); });
    station.downlink =
        &switch_.add_port(config.node.mac, scenario_.link, {.longest = config.longest_in},
                          [machine](const Frame& frame) { machine->receive(frame); });
    machine->plug_in(*station.uplink);
  }
}

// From the cable of host `from` to the switch at the other side of the bottleneck, if there is one.
void World::forward(std::size_t from, Frame frame) {
  if (!bottleneck_) return switch_.forward(std::move(frame));
  const auto size = frame.size();
  const bool may_be_marked = frame.may_be_marked;
  auto arrive = [this, frame = std::move(frame)](bool marked) mutable {
    frame.marked = marked;
    switch_.forward(std::move(frame));
  };
  if (scenario_.to_one ? from != 0 : from % 2 != 0)
    bottleneck_->send(static_cast<unsigned>(from), size, std::move(arrive), may_be_marked);
  else if (!bottleneck_->loses())
    run_.clock.after(bottleneck_->config().delay,
                     [arrive = std::move(arrive)]() mutable { arrive(false); });
}

void World::plan_outages() {
  for (const auto& outage : scenario_.outages) {
    run_.clock.after(outage.at, [this, &outage] { set_outage(outage, true); });
    run_.clock.after(outage.at + outage.lasts, [this, &outage] { set_outage(outage, false); });
  }
}

void World::set_outage(const Outage& outage, bool begins) {
  auto& station = stations_[outage.host];
  run_.trace.note(run_.now(), [&] {
    return std::string(outage.reboot ? "host " : "cable of host ") + std::to_string(outage.host) +
           (begins ? " goes down" : " comes back");
  });
  if (!outage.reboot) {
    station.uplink->cut(begins);
    station.downlink->cut(begins);
  } else if (begins && station.machine->up()) {
    count(*station.machine);
    station.machine->go_down();
  } else if (!begins && !station.machine->up()) {
    station.machine->boot();
  }
}

void World::start_pairs() {
  const auto hosts = stations_.size();
  for (unsigned i = 0; i < scenario_.pairs; ++i) {
    if (scenario_.apart) {
      pairs_.push_back({.client = 2 * i + 1, .server = 2 * i, .cycles_left = scenario_.cycles});
      continue;
    }
    const auto server = scenario_.to_one ? 0 : run_.dice.below(hosts);
    const auto client =
        scenario_.to_one ? 1 + i % (hosts - 1) : (server + 1 + run_.dice.below(hosts - 1)) % hosts;
    pairs_.push_back({.client = client, .server = server, .cycles_left = scenario_.cycles});
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
  const auto& asked = machine(dice.below(stations_.size())).config();
  wire::Header rc;
  rc.op_flags = wire::op_flags(wire::Op::kRequestConnection);
  rc.param = 64;
  rc.s_port = static_cast<std::uint16_t>(dice.between(1, wire::kMaxPort));
  rc.bufx = 14;
  rc.offset = dice.next() | 1;
  rc.sync = 10;
  rc.d_id = kUport + draw_node();
  const auto nobody = MacAddr::from_u64(std::uint64_t{0x06} << 40 | dice.next64() >> 24);
  Frame frame(256);
  frame.resize(wire::emit({asked.node.mac, nobody, asked.node.vlan}, rc, {}, {}, frame));
  run_.trace.sent(run_.now(), frame);
  switch_.forward(std::move(frame));
  run_.clock.after(scenario_.flood_every, [this] { flood(); });
}

// Draws nothing where there is no choice.
unsigned World::draw_node() {
  return scenario_.nodes == 1 ? 0 : static_cast<unsigned>(run_.dice.below(scenario_.nodes));
}

void World::begin(Pair& pair) {
  pair.client_node = draw_node();
  pair.server_node = draw_node();
  auto& client = machine(pair.client).host(pair.client_node);
  auto& server = machine(pair.server).host(pair.server_node);
  pair.honest = !client.lies() && !server.lies();
  const auto later = [&] { run_.clock.after(kSpread, [this, &pair] { begin(pair); }); };
  if (!client.up()) return later();
  const bool connected = scenario_.workload.kind != Workload::Kind::kConnectionless;
  if (!connected && !server.up()) return later();
  auto session = make_session(run_, {scenario_.workload, ++sessions_, pair.honest});
  if (!connected) {
    client.open_port(session->client());
    server.open_port(session->server());
  } else if (client.connect(server.config().node.mac, server.uport(), session->client(),
                            pair.names) == nullptr) {
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
    if (pair.session && !pair.taken && &machine(pair.server).host(pair.server_node) == &host &&
        machine(pair.client).config().node.mac == info.peer_mac &&
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

void World::play_until(Time end) {
  bool over = false;
  run_.clock.at(end, [&over] { over = true; });
  while (!over && !run_.verdict.guilty()) run_.clock.step();
}

void World::count(Machine& machine) {
  for (const auto& host : machine.hosts()) {
    const auto& counters = host->node().counters();
    delivered_ += counters.get(Counter::kRxDataBytes);
    overruns_ += counters.get(Counter::kSlotOverrun);
    for (const auto again :
         {Counter::kCtsRepeated, Counter::kDuplicateStu, Counter::kDuplicateBlock})
      repeats_ += counters.get(again);
    handed_over_ += host->handed_over();
  }
}

void World::retire() {
  bool honest = true;
  for (auto& station : stations_) {
    honest = honest && !station.machine->lies();
    count(*station.machine);
    station.machine->retire();
  }
  if (honest && scenario_.slots_hold())
    run_.verdict.require(overruns_ == 0, "an honest peer overran the Slots of another");
}

namespace {

// Gives each profile its own random numbers for the same seed.
std::uint64_t mix(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return seed * 0x9e3779b97f4a7c15 ^ hash;
}

}  // namespace

Result simulate(const Profile& profile, std::uint64_t seed, Watch watch, unsigned nodes) {
  Dice dice(mix(seed, profile.name));
  auto scenario = draw_scenario(profile, dice);
  scenario.nodes = nodes;
  return simulate(scenario, dice, std::move(watch));
}

std::size_t hosts_of(const Profile& profile, std::uint64_t seed) {
  Dice dice(mix(seed, profile.name));
  return draw_scenario(profile, dice).hosts.size();
}

Result simulate(const Scenario& scenario, Dice dice, Watch watch) {
  Run run{{}, {watch.text, std::move(watch.file), watch.station}, {}, dice};
  const auto begin = run.now();
  World world(run, scenario);
  world.play();
  Result result;
  result.failures = run.verdict.failures();
  result.file_error = run.trace.finish_file();
  result.hash = run.trace.hash();
  result.simulated = run.now() - begin;
  result.frames = run.trace.frames();
  result.bytes = run.trace.bytes();
  result.faults = run.trace.faults();
  result.delivered = world.delivered();
  result.ops = run.trace.ops();
  result.repeats = run.trace.repeats() + world.repeats();
  result.handed_over = world.handed_over();
  result.calls = run.trace.calls();
  result.questions = run.trace.questions();
  return result;
}

}  // namespace stp::sim
