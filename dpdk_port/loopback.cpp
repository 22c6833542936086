// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/loopback.h"

#include <algorithm>
#include <cassert>

namespace stp::port {

void Loopback::push(Bytes head, Bytes rest) {
  const std::size_t length = head.size() + rest.size();
  assert(count_ < kCapacity && length <= buffers_.room());
  std::byte* const buffer = buffers_.at(count_);
  std::copy(rest.begin(), rest.end(), std::copy(head.begin(), head.end(), buffer));
  frames_[count_++] = Bytes(buffer, length);
  ++total_;
}

unsigned Loopback::deliver(Engine& engine, Time now) {
  const std::span<const Bytes> waiting(frames_.data(), count_);
  for (std::size_t at = 0; at < waiting.size(); at += kBurst) {
    engine.receive(waiting.subspan(at, std::min(kBurst, waiting.size() - at)), now);
  }
  count_ = 0;
  return static_cast<unsigned>(waiting.size());
}

}  // namespace stp::port
