// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/wire.h"

#include <algorithm>

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

}  // namespace stp::sim
