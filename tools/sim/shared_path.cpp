// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/shared_path.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tools/sim/simulation.h"

namespace stp::sim {
namespace {

// RFC 9438: the constant of the cubic function, and what is left of the window after a loss.
constexpr double kC = 0.4, kBeta = 0.7;
constexpr double kRenoGain = 3 * (1 - kBeta) / (1 + kBeta);
constexpr std::size_t kBehind = 3;  // segments that arrive after a lost one, before it counts so
constexpr double kLeastWindow = 2;
constexpr Time kFirstTimeout = kSecond, kTimeout = 200 * kMillisecond;

double seconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kSecond);
}

}  // namespace

void Cubic::start() {
  heard_ = run_.now();
  send();
  watch();
}

void Cubic::send() {
  while (static_cast<double>(on_the_way_.size()) < window_) {
    const auto number = next_++;
    on_the_way_.push_back({number, run_.now()});
    path_.send(flow_, config_.segment, [this, number](bool /*marked*/) {
      run_.clock.after(config_.way_back, [this, number] { answered(number); });
    });
  }
}

// The path keeps the order: what was sent before an answered segment and is not answered is lost.
void Cubic::answered(std::uint64_t number) {
  const auto found =
      std::lower_bound(on_the_way_.begin(), on_the_way_.end(), number,
                       [](const Segment& s, std::uint64_t wanted) { return s.number < wanted; });
  if (found == on_the_way_.end() || found->number != number) return;  // counted as lost
  heard_ = run_.now();
  const auto measured = heard_ - found->sent;
  round_trip_ = round_trip_ == 0 ? measured : round_trip_ + measured / 8 - round_trip_ / 8;
  on_the_way_.erase(found);
  bool any = false;
  while (!on_the_way_.empty() && on_the_way_.front().number + kBehind <= number) {
    any = any || on_the_way_.front().number >= recovered_from_;
    on_the_way_.pop_front();
  }
  if (any)
    lost();
  else if (number >= recovered_from_)
    grow(measured);
  send();
}

void Cubic::grow(Time round_trip) {
  if (window_ < threshold_) {
    window_ += 1;
    return;
  }
  if (epoch_ == 0) {
    epoch_ = run_.now();
    most_ = std::max(most_, window_);
    reno_ = window_;
    origin_ = std::cbrt((most_ - window_) / kC);
  }
  const auto after = seconds(run_.now() - epoch_ + round_trip) - origin_;
  const auto wanted = std::clamp(kC * after * after * after + most_, window_, 1.5 * window_);
  reno_ += kRenoGain / window_;
  window_ = std::max(window_ + (wanted - window_) / window_, reno_);
}

void Cubic::lost() {
  // A connection that lost at less than last time leaves room for others.
  most_ = window_ < most_ ? window_ * (1 + kBeta) / 2 : window_;
  window_ = threshold_ = std::max(window_ * kBeta, kLeastWindow);
  recovered_from_ = next_;
  epoch_ = 0;
}

// Everything is lost if nothing has been answered for long.
void Cubic::watch() {
  const auto patience = round_trip_ == 0 ? kFirstTimeout : std::max(kTimeout, 2 * round_trip_);
  if (run_.now() - heard_ >= patience) {
    on_the_way_.clear();
    lost();
    window_ = 1;
    heard_ = run_.now();
    send();
  }
  run_.clock.after(patience / 2, [this] { watch(); });
}

namespace {

constexpr unsigned kSharedBufsize = 16;
constexpr std::uint32_t kSharedBuffers = 1 << 24;  // all that can be bound: 1 TiB
constexpr Time kSharedStart = 2 * kSecond;         // all connections are established by then
constexpr unsigned kMostPieces = 256;              // as many as one mapping has

// Where writes are apart, those with odd numbers send.
HostConfig host(unsigned number, const SharedPath& path) {
  HostConfig h;
  h.node.mac = MacAddr::from_u64(0x020000000001 + number);
  h.node.max_stu = path.max_stu;
  h.node.attach_from = 1024;
  const bool receives = path.to_one ? number == 0 : number % 2 == 0;
  h.node.routed = path.routed && !(path.greedy && receives);
  h.node.marks = h.node.padded_requests = path.bottleneck.marks;
  h.node.granted_limit = receives ? path.granted_limit : 0;
  h.node.granted_most = path.granted_most;
  h.reaction = path.reaction;
  h.pauses = receives ? path.of_receivers : path.of_senders;
  h.endpoint.bufsize = kSharedBufsize;
  h.endpoint.rx_bufx_count = h.endpoint.tx_bufx_count = kSharedBuffers;
  h.endpoint.recover = true;
  h.endpoint.slots = path.slots;
  h.endpoint.credits = 512;
  h.endpoint.connect_patience = 10 * kSecond;
  return h;
}

Scenario shared(const SharedPath& path, std::vector<Time>& finished) {
  Scenario s;
  const auto hosts = path.to_one ? path.writes + 1 : 2 * path.writes;
  for (unsigned i = 0; i < hosts; ++i) s.hosts.push_back(host(i, path));
  s.link = {std::max<std::uint64_t>(4 * path.bottleneck.bits_per_second, 1'000'000'000),
            kMicrosecond};
  s.pairs = path.writes;
  s.to_one = path.to_one;
  s.apart = !path.to_one;
  s.bottleneck = path.bottleneck;
  s.workload.kind = Workload::Kind::kBulk;
  s.workload.max_block = path.max_block;
  s.workload.patience = 10'000 * kSecond;
  const auto seconds =
      static_cast<double>(path.warm_up + path.lasts) / static_cast<double>(kSecond);
  const auto most = static_cast<double>(path.bottleneck.bits_per_second) / 8 * seconds;
  auto& bulk = s.workload.bulk;
  bulk.length = path.length != 0 ? path.length : static_cast<std::uint64_t>(most) + (1 << 20);
  s.workload.at_once = path.at_once;
  if (path.at_once > 1)
    bulk.writes = static_cast<unsigned>(most / static_cast<double>(bulk.length)) + path.at_once;
  const auto memory = std::max<std::size_t>(std::bit_ceil(bulk.length / kMostPieces + 1), 1 << 20);
  bulk.source = std::make_shared<Memory>(memory);
  bulk.landing = std::make_shared<Memory>(memory);
  bulk.start = kSharedStart;
  bulk.every = path.every;
  bulk.finished = &finished;
  bulk.cts_window = path.cts_window;
  fill_pattern(bulk.source->all(), 1);
  return s;
}

}  // namespace

SharedResult play_shared(const SharedPath& path) {
  Run run{{}, {nullptr, nullptr}, {}, Dice(path.writes)};
  std::vector<Time> finished;
  const auto scenario = shared(path, finished);
  World world(run, scenario);
  auto& bottleneck = world.bottleneck();
  std::vector<std::unique_ptr<Cubic>> flows;
  const auto first_flow = static_cast<unsigned>(scenario.hosts.size());
  for (unsigned i = 0; i < path.cubic; ++i) {
    flows.push_back(std::make_unique<Cubic>(run, bottleneck, first_flow + i,
                                            CubicConfig{.way_back = path.bottleneck.delay}));
    run.clock.at(kSharedStart + i * path.every, [flow = flows.back().get()] { flow->start(); });
  }
  world.play_until(kSharedStart + path.warm_up);
  bottleneck.begin_counting();
  world.play_until(kSharedStart + path.warm_up + path.lasts);
  SharedResult result;
  if (run.verdict.guilty()) result.failure = run.verdict.failures().front();
  result.use = bottleneck.use();
  result.delay = bottleneck.queueing_delay();
  result.drops = bottleneck.drops();
  result.dropped_bytes = bottleneck.dropped_bytes();
  result.marks = bottleneck.marks();
  result.finished = static_cast<unsigned>(finished.size());
  std::vector<std::uint64_t> shares;
  for (unsigned i = 0; i < path.writes; ++i)
    shares.push_back(bottleneck.bytes_of(path.to_one ? 1 + i : 2 * i + 1));
  result.fair = fairness(shares);
  std::uint64_t all = 0, of_cubic = 0;
  for (const auto share : shares) all += share;
  for (unsigned i = 0; i < path.cubic; ++i) of_cubic += bottleneck.bytes_of(first_flow + i);
  all += of_cubic;
  if (path.cubic != 0 && all != 0)
    result.cubic_share = static_cast<double>(of_cubic) / path.cubic /
                         (static_cast<double>(all) / (path.cubic + path.writes));
  return result;
}

}  // namespace stp::sim
