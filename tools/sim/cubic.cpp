// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/cubic.h"

#include <algorithm>
#include <cmath>

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
    path_.send(flow_, config_.segment, [this, number] {
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

}  // namespace stp::sim
