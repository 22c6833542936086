// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/grant_window.h"

#include <algorithm>

namespace stp::files {

GrantWindow::GrantWindow(std::uint32_t block_count, unsigned depth)
    : count_(block_count), limit_(depth), blocks_(depth) {}

// As long as Blocks keep coming, one that is late only stands in a queue: what was lost among them
// shows by being overtaken. The time is for the last ones, which nothing can overtake.
Time GrantWindow::deadline(const Block& block) const {
  return std::max(block.granted_at, progress_at_) + block.patience;
}

bool GrantWindow::overdue(const Block& block, Time now) const {
  return block.granted && !block.complete &&
         (block.overtaken >= kOvertaken || now >= deadline(block));
}

std::optional<std::uint32_t> GrantWindow::next_grant(Time now) const {
  for (auto b = first_; b != next_; ++b)
    if (overdue(at(b), now)) return b;
  auto const room = next_ - first_ < blocks_.size() && outstanding_ < limit_;
  if (next_ != count_ && room) return next_;
  return std::nullopt;
}

void GrantWindow::granted(std::uint32_t block, Time now) {
  auto& b = at(block);
  if (block == next_) {
    b = Block{};
    b.granted = true;
    b.first_order = orders_;
    ++next_;
    ++outstanding_;
  } else {
    ++repeats_;
  }
  b.patience = timeout(b.tries++);
  b.granted_at = now;
  b.last_order = orders_++;
  b.overtaken = 0;
}

void GrantWindow::ask_again() {
  for (auto b = first_; b != next_; ++b) {
    if (at(b).complete) continue;
    at(b).overtaken = kOvertaken;
    return;
  }
}

Time GrantWindow::next_deadline() const {
  auto soonest = Time::max();
  for (auto b = first_; b != next_; ++b)
    if (!at(b).complete) soonest = std::min(soonest, deadline(at(b)));
  return soonest;
}

bool GrantWindow::complete(std::uint32_t block, Time now) {
  if (block < first_ || block >= next_ || at(block).complete) return false;
  auto& done = at(block);
  done.complete = true;
  --outstanding_;
  progress_at_ = now;
  auto const took = now - done.granted_at;
  // Of a repeated Block nobody knows which grant it answers; it is the first one if it comes
  // sooner after the last than Blocks do.
  auto const order = took < smoothed_ / 2 ? done.first_order : done.last_order;
  if (done.tries == 1) measure(took);
  for (auto b = first_; b != next_; ++b)
    if (!at(b).complete && at(b).last_order < order) ++at(b).overtaken;
  return true;
}

bool GrantWindow::ready() const {
  return first_ != next_ && at(first_).complete;
}

void GrantWindow::used() {
  ++first_;
}

// RFC 6298, with the time a Block takes from its grant to its completion.
void GrantWindow::measure(Duration sample) {
  if (!measured_) {
    measured_ = true;
    smoothed_ = sample;
    variation_ = sample / 2;
    return;
  }
  auto const error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
  variation_ += (error - variation_) / 4;
  smoothed_ += (sample - smoothed_) / 8;
}

Duration GrantWindow::timeout(unsigned tries) const {
  auto const base = measured_ ? smoothed_ + 4 * variation_ : kFirstTimeout;
  auto const doubled = std::max(base, kMinTimeout) * (1 << std::min(tries, 10U));
  return std::min<Duration>(doubled, kMaxTimeout);
}

}  // namespace stp::files
