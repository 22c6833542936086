// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/path.h"

#include <algorithm>
#include <bit>

#include "stp/wire/layout.h"

namespace stp {
namespace {

constexpr double kQueued = 2;            // pieces that a sender keeps in the queue
constexpr double kFirstWindow = 16'384;  // about what TCP begins with
constexpr double kMostWindow = std::uint64_t{1} << 40;
constexpr double kLossFactor = 0.7;
// So many pieces less for each loss by chance.
// protocol: 13.12
constexpr double kChanceLoss = 4;
// Where a router marks, its queue is shorter than what the senders would keep there. So for that
// many round trips after a mark the window grows by no more than this part of what it would.
// protocol: 13.22
constexpr unsigned kCalmTrips = 64;
constexpr double kCalmGrowth = 1.0 / 4;
// A sender sees a loss only if it hits a question.
constexpr double kSentLossFactor = 0.5;
// A sender keeps no more pieces than that in a queue where they wait for longer: routers drop them.
// protocol: 13.16
constexpr double kSentQueued = 4, kMostSentWait = 5 * kMillisecond;
// Its questions leave behind what it has sent at once, and wait for that: a part of a Block is up
// to a 64th of the window.
constexpr double kSentAtOnce = 1.0 / 32;
constexpr unsigned kSteady = 3;  // round trips in one direction, before the steps grow
// The part of a delay that is not the network's: programs and Nodes wait for their turn on a core.
// They may need the first, but where delays differ, so many times what they differ by.
constexpr Time kHostDelay = 100 * kMicrosecond, kLeastHostDelay = 10 * kMicrosecond;
constexpr Time kMostHostDelay = kMillisecond;
constexpr Time kOfNoise = 4;
// A step makes the window longer by no more than this part of it, and the queue by no more than
// this: what it does is seen a round trip later, and routers drop what waits for 5 ms.
// protocol: 13.11
constexpr double kMostGrowth = 1.0 / 8;
constexpr Time kMostDelay = 3'500 * kMicrosecond;
// The window gets smaller by no more than what makes the queue so much shorter, at first.
constexpr double kMostDrain = 7 * kMillisecond;
// Who has more than its pieces in the queue of a long path yields this part of its window, or less
// where a round trip is shorter than this. Nearly all windows of such a path move up and down
// together, so what each has in a short queue would bring unequal ones nearer too slowly.
constexpr double kYield = 1.0 / 8, kYieldTrip = 80 * kMillisecond;
// There, a window that is near what the path carried when it had a queue makes it longer by no more
// than this: who overshoots by little yields little.
constexpr Time kMostDelayNear = 2 * kMillisecond;
constexpr double kNear = 1.1;
// A step makes the queue longer by no more than this part of what it held when it overflowed.
// protocol: 13.12
constexpr double kOfOverflow = 1.0 / 2;
// Shorter paths are seen often enough, and who has begun late may not know their length yet.
constexpr Time kLongPath = 20 * kMillisecond;
constexpr double kSafe = 0.9;  // this part of what the path carries makes no queue
// So much more than that without a queue shows that it was too little. Then the window may grow by
// this part of it.
constexpr double kMore = 1.05, kGrowthAgain = 1.0 / 4;
// How long the shortest delay counts without having been seen again.
// protocol: 13.11
Time seen_for(Time shortest) {
  return std::min(std::max(50 * kMillisecond, 100 * shortest),
                  std::max(2 * kSecond, 50 * shortest));
}

}  // namespace

void RecentMinimum::note(Time value, Time now, Time period) {
  constexpr unsigned kSamples = 8;
  constexpr Time kLongEnough = 500 * kMicrosecond;
  ++count_;
  const auto since = now - since_;
  if (since >= period && (count_ >= kSamples || since >= kLongEnough)) {
    before_ = since >= 2 * period ? kNever : present_;
    present_ = kNever;
    since_ = now;
    count_ = 0;
  }
  present_ = std::min(present_, value);
}

// What comes together has waited together.
void DelayNoise::note(Time delay, Time now) {
  constexpr double kGain = 1.0 / 16;
  if (now == at_) return;
  const auto differs = delay > last_ ? delay - last_ : last_ - delay;
  if (at_ != 0) mean_ += kGain * (static_cast<double>(differs) - mean_);
  last_ = delay;
  at_ = now;
}

void LossCause::note(Time excess) {
  last_ = excess;
  sum_ += static_cast<double>(excess);
  ++samples_;
}

void LossCause::lost() {
  constexpr double kGain = 1.0 / 16, kAsMuch = 0.9;
  constexpr double kOverflowGain = 1.0 / 4;
  if (samples_ == 0) return;
  const bool much =
      last_ >= kLeastHostDelay && static_cast<double>(last_) >= kAsMuch * sum_ / samples_;
  part_ += kGain * ((much ? 1 : 0) - part_);
  const auto last = static_cast<double>(last_);
  if (much) overflow_ += (overflow_ == 0 ? 1 : kOverflowGain) * (last - overflow_);
  sum_ /= 2;
  samples_ /= 2;
}

bool LossCause::is_overflow() const {
  constexpr double kMostly = 0.75;
  return part_ > kMostly;
}

PathWindow::PathWindow(std::uint64_t piece, unsigned times)
    : piece_(static_cast<double>(piece)),
      times_(times),
      window_(times_ * std::max(kFirstWindow, 2 * piece_)),
      most_host_delay_(kMostHostDelay) {}

void PathWindow::measure(Time delay, bool full, Time now) {
  round_trip_ = round_trip_ == 0 ? delay : round_trip_ - round_trip_ / 8 + delay / 8;
  standing_.note(delay, now, is_of_sender() ? round_trip_ : round_trip_ / 4);
  noise_.note(delay, now);
  cause_.note(delay - std::min(delay, shortest_));
  if (drains_) return look_at_path(delay, now);
  shortest_ = std::min(shortest_, delay);
  // While the window is not full, nothing waits because of it.
  if (!full || delay <= shortest_ + shortest_ / 8) seen_ = now;
  if (starts_ || now - seen_ < seen_for(shortest_)) return;
  drains_ = true;
  drained_ = now + standing_.value();
  least_ = kNever;
}

bool PathWindow::is_long() const {
  return !is_of_sender() && shortest_ >= kLongPath;
}

// So much less that this sender has nothing in a queue. Where receivers pace, they empty it.
std::uint64_t PathWindow::drained() const {
  constexpr double kShort = 32;  // pieces
  const bool by_a_part = is_of_sender() || window_ > kShort * piece_;
  return static_cast<std::uint64_t>(by_a_part ? window_ * 3 / 4 : piece_);
}

// What is on its way now was asked for when little else was.
void PathWindow::look_at_path(Time delay, Time now) {
  if (now < drained_) return;
  least_ = std::min(least_, delay);
  if (now < drained_ + std::min(least_, round_trip_)) return;
  drains_ = false;
  shortest_ = least_;
  seen_ = now;
  most_host_delay_ = std::min(2 * most_host_delay_, kMostHostDelay);
}

// The part of a delay that hosts may need. That of a long path is little beside its length.
// protocol: 13.10, 13.12
Time PathWindow::host_delay() const {
  const auto noise = shortest_ < kLongPath ? noise_.mean() : 0;
  return std::min(std::max(kHostDelay, kOfNoise * noise), most_host_delay_);
}

// The part of the standing delay that is taken for waiting in queues.
Time PathWindow::waits() const {
  const auto without = shortest_ + host_delay();
  return standing_.value() - std::min(standing_.value(), without);
}

// What of the window waits there.
double PathWindow::queued() const {
  return window_ * static_cast<double>(waits()) / static_cast<double>(standing_.value());
}

// A sender that keeps kQueued pieces in a queue gets them through in the time that they wait there.
// So its rate is right if it is kQueued pieces in that time.
bool PathWindow::may_grow() const {
  if (is_of_sender() && static_cast<double>(waits()) > kMostSentWait &&
      queued() > kSentQueued * piece_)
    return false;
  const auto at_once = is_of_sender() ? kSentAtOnce * window_ : 0;
  return queued() <= std::max(times_ * kQueued * piece_, at_once);
}

// By which part the window may grow in a round trip, but that two pieces always may.
double PathWindow::most_growth() const {
  if (carries_more_) return kGrowthAgain;
  if (window_ < kSafe * carried_) return kMostGrowth;
  auto delay = static_cast<double>(kMostDelay);
  if (is_long() && window_ < kNear * carried_) delay = kMostDelayNear;
  if (cause_.is_overflow() && cause_.overflow() != 0)
    delay = std::min(delay, kOfOverflow * cause_.overflow());
  return std::min(kMostGrowth, delay / static_cast<double>(standing_.value()));
}

// Whether what waited when a queue was seen did so because it came at once: more has come now, and
// hardly any of it has waited.
// protocol: 13.11
bool PathWindow::was_burst(double carries) const {
  return !starts_ && !is_of_sender() && carries > kMore * most_carried_ &&
         round_trip_ <= shortest_ + shortest_ / 32 + host_delay();
}

// Once per round trip: what the path carries without a queue, if there is one.
void PathWindow::weigh(std::uint64_t bytes, Time now) {
  came_ += bytes;
  const auto since = now - weighed_;
  if (since < round_trip_) return;
  const auto carries =
      static_cast<double>(came_) * static_cast<double>(shortest_) / static_cast<double>(since);
  if (standing_.value() > shortest_ + host_delay()) {
    if (since < 2 * round_trip_) carried_ = carries;
    most_carried_ = std::max(most_carried_, carried_);
    carries_more_ = false;
  } else if (was_burst(carries)) {
    most_carried_ = carries;
    carries_more_ = true;
  }
  came_ = 0;
  weighed_ = now;
}

// Once per round trip: whether the window keeps its direction.
void PathWindow::turn(bool up, Time now) {
  if (now - looked_ >= round_trip_) {
    const bool rose = window_ > window_then_;
    same_ = rose == up_ ? same_ + 1 : 0;
    up_ = rose;
    step_ = same_ >= kSteady ? 2 * step_ : 1;
    looked_ = now;
    window_then_ = window_;
  }
  if (up == up_) return;
  up_ = up;
  same_ = 0;
  step_ = 1;
  looked_ = now;
  window_then_ = window_;
}

double PathWindow::growth() const {
  const auto one = kQueued * piece_ / window_;
  return std::min(step_ * one, std::max(most_growth(), one));
}

// What is too much in the queue goes within a round trip, so that those with much on the way lose
// more than others. But not all of a long queue at once: that may have come in a burst. If it is
// still there after some round trips, steps that double make it go. Of a short queue, it is little
// of a large window; so that yields a part of itself, of which `calm` remains after a mark.
// protocol: 13.11
double PathWindow::shrinkage(double calm) const {
  const auto one = kQueued * piece_ / window_;
  const auto steps = step_ * one;
  if (!is_long()) return steps;
  const auto excess = queued() / window_ - one;
  const auto trip = static_cast<double>(standing_.value());
  const auto too_much = excess > 0 ? excess / (excess + one) : 0;  // part of what it has there
  const auto yields = kYield * std::min(trip / kYieldTrip, 1.0) * too_much * calm;
  return std::max(std::min(std::max(excess, one), std::max(steps, kMostDrain / trip)), yields);
}

void PathWindow::arrived(std::uint64_t bytes, Time delay, Use use, Time now) {
  const bool full = use != Use::kLittle;
  if (delay != 0) measure(delay, full, now);
  if (round_trip_ != 0) weigh(bytes, now);
  if (round_trip_ == 0 || drains_) return;
  const bool up = may_grow();
  if (up ? !full : is_of_sender() && use != Use::kBinds) return;
  const auto came = static_cast<double>(bytes);
  if (starts_ && up) {
    window_ = std::min(window_ + came, kMostWindow);
    return;
  }
  starts_ = false;
  turn(up, now);
  const auto calm = now < calm_until_ ? kCalmGrowth : 1;
  // No more than half of the window in a round trip.
  const auto part = std::min(up ? calm * growth() : shrinkage(calm), 0.5);
  window_ = std::clamp(window_ + (up ? part : -part) * came, times_ * piece_, kMostWindow);
}

// Chance loses what it loses however small the window is, so it takes little from that of a short
// path. But in a round trip it takes no more than a queue that overflows.
// protocol: 13.12
void PathWindow::lost(Time now) {
  const auto factor = is_of_sender() ? kSentLossFactor : kLossFactor;
  const bool first = now >= recovers_until_;
  if (first) cause_.lost();
  if (cause_.is_overflow() || shortest_ >= kLongPath) return shrink(factor, now);
  starts_ = false;
  if (first) {
    recovers_until_ = now + round_trip_;
    floor_ = std::max(window_ * factor, times_ * piece_);
    most_host_delay_ = std::min(most_host_delay_ + most_host_delay_ / 4, kMostHostDelay);
  }
  window_ = std::min(window_, std::max(window_ - kChanceLoss * times_ * piece_, floor_));
}

void PathWindow::silent(Time now) {
  shrink(kSentLossFactor, now);
}

void PathWindow::marked(Time now) {
  calm_until_ = now + kCalmTrips * round_trip_;
  shrink(kLossFactor, now);
}

// Once in a round trip.
void PathWindow::shrink(double factor, Time now) {
  if (now < recovers_until_) return;
  recovers_until_ = now + round_trip_;
  starts_ = carries_more_ = false;
  // A queue that overflows is a queue, however short.
  if (const auto standing = standing_.value(); standing != kNever)
    most_host_delay_ = std::clamp((standing - std::min(standing, shortest_)) / 2, kLeastHostDelay,
                                  most_host_delay_);
  window_ = std::max(window_ * factor, times_ * piece_);
  step_ = 1;
  same_ = 0;
}

namespace {

// How long an answer may take. A host that does not run for a while loses nothing.
constexpr Time kUnknownInterval = kSecond, kLeastInterval = 200 * kMillisecond;
constexpr Time kLongestInterval = kSecond;
// While something waits to be sent along a short path, a question is repeated sooner: its answer
// would make room.
constexpr Time kLeastAgain = 2 * kMillisecond;
constexpr unsigned kAgainDoublings = 10;

}  // namespace

Time SentWindow::first_interval() const {
  const auto round_trip = window_.round_trip();
  return round_trip == 0 ? kUnknownInterval : std::max(kLeastInterval, 4 * round_trip);
}

void SentWindow::ask(std::uint32_t sync, VcId vc, Time now) {
  if (!is_open()) {
    heard_ = now;
    if (!silent_) interval_ = first_interval();
  }
  auto& ask = asks_[next_++ % asks_.size()];
  close(ask);
  ask = {sync, true, true, sent_, now};
  ++opened_;
  asked_ = sent_;
  asker_ = vc;
  const auto trip = window_.round_trip();
  const auto after = std::max(kLeastAgain, 4 * trip) << std::min(repeats_, kAgainDoublings);
  again_ = trip == 0 || trip >= kLongPath ? kNever : now + after;
}

bool SentWindow::answered(std::uint32_t sync, Time now) {
  const auto found =
      std::ranges::find_if(asks_, [sync](const Ask& ask) { return ask.any && ask.sync == sync; });
  if (found == asks_.end()) return false;
  if (!found->open) return true;  // an answer again, or one to a question that counts as lost
  const bool full = kFull * unproven() >= window_.bytes();
  // The path keeps the order, as a rule: what was asked earlier is lost.
  bool lost = false;
  for (auto& earlier : asks_) {
    const bool later = earlier.sent > found->sent || earlier.left > found->left;
    if (!earlier.open || later || &earlier == &*found) continue;
    lost = true;
    close(earlier);
  }
  close(*found);
  using Use = PathWindow::Use;
  const auto use = waits() ? Use::kBinds : full ? Use::kFull : Use::kLittle;
  window_.arrived(found->sent - proven_, std::max<Time>(now - found->left, 1), use, now);
  if (lost) window_.lost(now);
  proven_ = found->sent;
  heard_ = now;
  silent_ = false;
  repeats_ = 0;
  interval_ = first_interval();
  return true;
}

void SentWindow::silent(Time now) {
  ++repeats_;
  if (now < silence_ends()) return;
  if (!silent_) window_.silent(now);
  silent_ = true;
  for (auto& ask : asks_) close(ask);
  interval_ = std::min(2 * interval_, std::max(kLongestInterval, first_interval()));
}

void SentWindow::give_up() {
  for (auto& ask : asks_) close(ask);
  proven_ = asked_ = sent_;
  silent_ = false;
}

// What leaves at once waits at once. Then only who has much on the way sees the queue empty.
// protocol: 13.18
void Path::leaves(std::uint64_t bytes, Time now) {
  constexpr Time kShort =
      10 * kMillisecond;  // what is spread there waits no longer than hosts may need
  // The window leaves in this part of a round trip. While it doubles, it is half of what will.
  const double of_trip = window_.is_known() ? 0.9 : 0.5;
  const auto trip = window_.round_trip();
  if (trip < kShort) return;
  const auto part = static_cast<double>(bytes) / static_cast<double>(window_.bytes());
  due_ = std::max(due_, now) + static_cast<Time>(of_trip * part * static_cast<double>(trip));
}

namespace {

// A part of a Block takes no longer than that to come.
constexpr Time kPartTime = kMillisecond;

}  // namespace

unsigned Path::block_log2() const {
  constexpr std::uint64_t kBlocks = 8;  // in a window
  constexpr std::uint64_t kFirst = 4;   // pieces
  const auto least = window_.is_known() ? piece_ : kFirst * piece_;
  const auto suits = std::max(window_.bytes() / kBlocks, least);
  return std::min(static_cast<unsigned>(std::bit_width(suits)) - 1, wire::kMaxBlocksize);
}

std::uint64_t Path::part() const {
  constexpr std::uint64_t kLeast = 4;  // pieces
  constexpr std::uint64_t kMost = 64;  // in a window: each takes a Slot of the sender
  const auto eighth = std::uint64_t{1} << block_log2();
  const auto trip = window_.round_trip();
  if (trip <= kPartTime) return eighth;
  const auto in_time = static_cast<double>(window_.bytes()) * static_cast<double>(kPartTime) /
                       static_cast<double>(trip);
  return std::min(eighth, std::max({static_cast<std::uint64_t>(in_time), kLeast * piece_,
                                    window_.bytes() / kMost}));
}

PathTable::Share PathTable::find(const MacAddr& station, std::uint64_t stu) {
  auto& entry = paths_.try_emplace(station, *this, station, stu).first->second;
  ++entry.shares;
  return Share(&entry);
}

void PathTable::Leave::operator()(Path* path) const {
  auto& entry = static_cast<Entry&>(*path);
  if (--entry.shares != 0) return;
  const auto station = entry.station;
  entry.table.timers_.remove(entry.sent());
  entry.table.due_.remove(entry);
  entry.table.paths_.erase(station);
}

}  // namespace stp
