// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "stp/wire/layout.h"

namespace stp::sim {
namespace {

constexpr std::uint64_t kOverhead = 24;  // preamble, FCS, gap
constexpr std::uint64_t kBitsPerByte = 8;

}  // namespace

Time Wire::duration(std::size_t size) const {
  return (size + kOverhead) * kBitsPerByte * kSecond / link_.bits_per_second;
}

void Wire::send(std::size_t size, std::function<Frame()> content, std::function<void()> idle) {
  busy_ = true;
  run_.clock.after(duration(size), [this, content = std::move(content), idle = std::move(idle)] {
    busy_ = false;
    if (auto frame = content(); !frame.empty()) launch(std::move(frame));
    idle();
  });
}

bool Wire::lost(const Frame& frame) {
  const auto now = run_.now();
  const auto because = [&](Fault why) {
    run_.trace.fault(now, why, frame);
    return true;
  };
  if (cut_) return because(Fault::kCut);
  if (now >= burst_until_ && dice_.chance(faults_.burst))
    burst_until_ = now + dice_.between(1, faults_.burst_length);
  if (now < burst_until_) return because(Fault::kBurstLost);
  if (frame.size() > faults_.longest) return because(Fault::kLost);
  return dice_.chance(faults_.loss) && because(Fault::kLost);
}

void Wire::launch(Frame frame) {
  const auto now = run_.now();
  if (lost(frame)) return;
  if (dice_.chance(faults_.corrupt) && frame.size() > wire::kEthernetSize) {
    run_.trace.fault(now, Fault::kCorrupted, frame);
    // Changes a byte behind the Ethernet header, because the Cksum does not cover the header.
    const auto at = dice_.between(wire::kEthernetSize, frame.size() - 1);
    frame[at] ^= static_cast<std::byte>(dice_.between(1, 255));
  }
  auto arrival = now + link_.latency;
  if (dice_.chance(faults_.delay)) {
    run_.trace.fault(now, Fault::kDelayed, frame);
    arrival += dice_.between(1, faults_.delay_by);
  }
  arrival = last_arrival_ = std::max(last_arrival_, arrival);
  if (dice_.chance(faults_.duplicate)) {
    run_.trace.fault(now, Fault::kDuplicated, frame);
    fly(frame, arrival + dice_.between(0, 4 * link_.latency));
  }
  if (dice_.chance(faults_.reorder)) {
    run_.trace.fault(now, Fault::kReordered, frame);
    arrival += dice_.between(1, faults_.reorder_by);
  }
  fly(std::move(frame), arrival);
}

void Wire::fly(Frame frame, Time arrival) {
  run_.clock.at(arrival, [this, frame = std::move(frame)]() mutable {
    if (cut_)
      run_.trace.fault(run_.now(), Fault::kCut, frame);
    else
      deliver_(std::move(frame));
  });
}

Wire& Switch::add_port(const MacAddr& mac, const LinkConfig& link, const Faults& faults,
                       Wire::Deliver deliver) {
  auto& port = ports_[mac];
  port.wire = std::make_unique<Wire>(run_, link, faults, std::move(deliver));
  return *port.wire;
}

void Switch::forward(Frame frame) {
  MacAddr destination;
  if (frame.size() < wire::kEthernetSize) return;
  std::memcpy(destination.octets.data(), frame.data(), destination.octets.size());
  const auto found = ports_.find(destination);
  if (found == ports_.end()) return;
  auto& port = found->second;
  if (port.bytes + frame.size() > buffer_)
    return run_.trace.fault(run_.now(), Fault::kOverflow, frame);
  port.bytes += frame.size();
  port.queue.push_back(std::move(frame));
  drain(port);
}

void Switch::drain(Port& port) {
  if (port.wire->busy() || port.queue.empty()) return;
  const auto take = [&port] {
    auto frame = std::move(port.queue.front());
    port.queue.pop_front();
    port.bytes -= frame.size();
    return frame;
  };
  port.wire->send(port.queue.front().size(), take, [this, &port] { drain(port); });
}

namespace {

// What RFC 8289 recommends.
constexpr Time kCodelTarget = 5 * kMillisecond, kCodelInterval = 100 * kMillisecond;
constexpr std::size_t kCodelLeast = 1'514;  // with no more in the queue nothing is dropped

Time codel_pause(unsigned count) {
  return static_cast<Time>(static_cast<double>(kCodelInterval) / std::sqrt(count));
}

}  // namespace

void Bottleneck::send(unsigned flow, std::size_t size, Arrive arrive, bool may_be_marked) {
  if (loses()) return;
  if (bytes_ + size > config_.queue) {
    ++drops_;
    dropped_bytes_ += size;
    return;
  }
  bytes_ += size;
  queue_.push_back({flow, size, run_.now(), std::move(arrive), may_be_marked});
  serve();
}

Bottleneck::Packet Bottleneck::take() {
  auto packet = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= packet.size;
  return packet;
}

// Whether CoDel drops or marks `packet`, which has just left the queue.
bool Bottleneck::codel_refuses(const Packet& packet) {
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
    const bool refused = config_.codel && codel_refuses(packet);
    const bool marked = refused && config_.marks && packet.may_be_marked;
    if (refused && !marked) {
      ++drops_;
      dropped_bytes_ += packet.size;
      continue;
    }
    if (marked) ++marks_;
    busy_ = true;
    waited_ += run_.now() - packet.entered;
    ++packets_;
    const auto lasts = packet.size * 8 * kSecond / config_.bits_per_second;
    run_.clock.after(lasts, [this, marked, flow = packet.flow, size = packet.size,
                             arrive = std::move(packet.arrive)]() mutable {
      busy_ = false;
      passed_[flow] += size;
      run_.clock.after(config_.delay, [marked, arrive = std::move(arrive)] { arrive(marked); });
      serve();
    });
    return;
  }
}

void Bottleneck::begin_counting() {
  since_ = run_.now();
  waited_ = 0;
  packets_ = drops_ = dropped_bytes_ = marks_ = 0;
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
