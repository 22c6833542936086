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
constexpr unsigned kSteady = 3;  // round trips in one direction, before the steps grow
// The part of a delay that is not the network's: programs and Nodes wait for their turn on a core.
constexpr Time kHostDelay = 100 * kMicrosecond;
// How long the shortest delay counts without having been seen again: this, or as many round trips.
constexpr Time kSeenFor = 2 * kSecond, kTripsSeenFor = 50;

}  // namespace

void RecentMinimum::note(Time value, Time now, Time period) {
  if (now - since_ >= period) {
    before_ = now - since_ >= 2 * period ? kNever : present_;
    present_ = kNever;
    since_ = now;
  }
  present_ = std::min(present_, value);
}

PathWindow::PathWindow(std::uint64_t piece)
    : piece_(static_cast<double>(piece)), window_(std::max(kFirstWindow, 2 * piece_)) {}

void PathWindow::measure(Time delay, bool full, Time now) {
  round_trip_ = round_trip_ == 0 ? delay : round_trip_ - round_trip_ / 8 + delay / 8;
  standing_.note(delay, now, round_trip_ / 4);
  if (drains_) return look_at_path(delay, now);
  shortest_ = std::min(shortest_, delay);
  // While the window is not full, nothing waits because of it.
  if (!full || delay <= shortest_ + shortest_ / 8) seen_ = now;
  if (starts_ || now - seen_ < std::max(kSeenFor, kTripsSeenFor * shortest_)) return;
  drains_ = true;
  drained_ = now + standing_.value();
  least_ = kNever;
}

// So much less that this sender has nothing in a queue.
std::uint64_t PathWindow::drained() const {
  constexpr double kShort = 32;  // pieces
  return static_cast<std::uint64_t>(window_ > kShort * piece_ ? window_ * 3 / 4 : piece_);
}

// What is on its way now was asked for when little else was.
void PathWindow::look_at_path(Time delay, Time now) {
  if (now < drained_) return;
  least_ = std::min(least_, delay);
  if (now < drained_ + std::min(least_, round_trip_)) return;
  drains_ = false;
  shortest_ = least_;
  seen_ = now;
}

// A sender that keeps kQueued pieces in a queue gets them through in the time that they wait there.
// So its rate is right if it is kQueued pieces in that time.
bool PathWindow::may_grow() const {
  const auto standing = standing_.value();
  const auto without = shortest_ + kHostDelay;
  if (standing <= without) return true;
  const auto waits = static_cast<double>(standing - without);
  return window_ * waits <= kQueued * piece_ * static_cast<double>(standing);
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

void PathWindow::arrived(std::uint64_t bytes, Time delay, bool full, Time now) {
  if (delay != 0) measure(delay, full, now);
  if (round_trip_ == 0 || drains_) return;
  const bool up = may_grow();
  if (up && !full) return;
  const auto came = static_cast<double>(bytes);
  if (starts_ && up) {
    window_ = std::min(window_ + came, kMostWindow);
    return;
  }
  starts_ = false;
  turn(up, now);
  // No more than half of the window in a round trip.
  const auto change = std::min(step_ * kQueued * piece_ / window_, 0.5) * came;
  window_ = std::clamp(up ? window_ + change : window_ - change, piece_, kMostWindow);
}

void PathWindow::lost(Time now) {
  if (now < recovers_until_) return;
  recovers_until_ = now + round_trip_;
  starts_ = false;
  window_ = std::max(window_ * kLossFactor, piece_);
  step_ = 1;
  same_ = 0;
}

unsigned Path::block_log2() const {
  constexpr std::uint64_t kBlocks = 8;  // in a window
  constexpr std::uint64_t kFirst = 4;   // pieces
  const auto least = window_.is_known() ? piece_ : kFirst * piece_;
  const auto suits = std::max(window_.bytes() / kBlocks, least);
  return std::min(static_cast<unsigned>(std::bit_width(suits)) - 1, wire::kMaxBlocksize);
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
  entry.table.paths_.erase(station);
}

}  // namespace stp
