// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/bottleneck.h"

#include <cmath>
#include <numeric>

namespace stp::sim {
namespace {

// What RFC 8289 recommends.
constexpr Time kCodelTarget = 5 * kMillisecond, kCodelInterval = 100 * kMillisecond;
constexpr std::size_t kCodelLeast = 1'514;  // with no more in the queue nothing is dropped

Time codel_pause(unsigned count) {
  return static_cast<Time>(static_cast<double>(kCodelInterval) / std::sqrt(count));
}

}  // namespace

void Bottleneck::send(unsigned flow, std::size_t size, std::function<void()> arrive) {
  if (bytes_ + size > config_.queue) {
    ++drops_;
    return;
  }
  bytes_ += size;
  queue_.push_back({flow, size, run_.now(), std::move(arrive)});
  serve();
}

Bottleneck::Packet Bottleneck::take() {
  auto packet = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= packet.size;
  return packet;
}

// Whether CoDel drops `packet`, which has just left the queue.
bool Bottleneck::codel_drops(const Packet& packet) {
  const auto now = run_.now();
  if (now - packet.entered < kCodelTarget || bytes_ <= kCodelLeast) {
    codel_.above_since = kNever;
    codel_.dropping = false;
    return false;
  }
  if (codel_.above_since == kNever) codel_.above_since = now;
  if (codel_.dropping) {
    if (now < codel_.next) return false;
    codel_.next += codel_pause(++codel_.count);
    return true;
  }
  if (now - codel_.above_since < kCodelInterval) return false;
  // It goes on near the rate of drops that sufficed a short time ago.
  const bool recent = codel_.next != 0 && now - codel_.next < 16 * kCodelInterval;
  codel_.dropping = true;
  codel_.count = recent && codel_.count > 2 ? codel_.count - 2 : 1;
  codel_.next = now + codel_pause(codel_.count);
  return true;
}

void Bottleneck::serve() {
  if (busy_) return;
  while (!queue_.empty()) {
    auto packet = take();
    if (config_.codel && codel_drops(packet)) {
      ++drops_;
      continue;
    }
    busy_ = true;
    waited_ += run_.now() - packet.entered;
    ++packets_;
    const auto lasts = packet.size * 8 * kSecond / config_.bits_per_second;
    run_.clock.after(lasts, [this, flow = packet.flow, size = packet.size,
                             arrive = std::move(packet.arrive)]() mutable {
      busy_ = false;
      passed_[flow] += size;
      run_.clock.after(config_.delay, std::move(arrive));
      serve();
    });
    return;
  }
}

void Bottleneck::begin_counting() {
  since_ = run_.now();
  waited_ = 0;
  packets_ = drops_ = 0;
  passed_.clear();
}

double Bottleneck::use() const {
  std::uint64_t bytes = 0;
  for (const auto& [flow, passed] : passed_) bytes += passed;
  const auto seconds = static_cast<double>(run_.now() - since_) / static_cast<double>(kSecond);
  return static_cast<double>(8 * bytes) / seconds / static_cast<double>(config_.bits_per_second);
}

std::uint64_t Bottleneck::bytes_of(unsigned flow) const {
  const auto found = passed_.find(flow);
  return found == passed_.end() ? 0 : found->second;
}

double fairness(const std::vector<std::uint64_t>& shares) {
  double sum = 0, squares = 0;
  for (const auto share : shares) {
    sum += static_cast<double>(share);
    squares += static_cast<double>(share) * static_cast<double>(share);
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace stp::sim
