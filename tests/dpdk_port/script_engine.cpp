// SPDX-License-Identifier: BSD-3-Clause
#include "tests/dpdk_port/script_engine.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stp::port {

void ScriptEngine::receive(std::span<const Bytes> burst, Time) {
  for (const Bytes frame : burst) {
    received.emplace_back(frame.begin(), frame.end());
    if (!answer.empty()) send(answer);
  }
}

void ScriptEngine::receive_looped(std::span<const LoopedFrame> burst, Time now) {
  for (const LoopedFrame& frame : burst) {
    Frame whole(frame.head.begin(), frame.head.end());
    whole.insert(whole.end(), frame.attached.begin(), frame.attached.end());
    const Bytes bytes(whole);
    receive({&bytes, 1}, now);
  }
}

std::size_t ScriptEngine::transmit(std::span<TxFrame> frames, Time) {
  std::size_t count = 0;
  for (; count < frames.size() && !outgoing_.empty(); ++count) {
    const Outgoing& out = outgoing_.front();
    std::copy(out.head.begin(), out.head.end(), frames[count].head);
    frames[count].head_length = out.head.size();
    frames[count].attached = out.attached;
    frames[count].token = out.token;
    frames[count].for_stranger = out.for_stranger;
    frames[count].presence = out.presence;
    frames[count].may_be_marked = out.may_be_marked;
    outgoing_.pop_front();
  }
  return count;
}

void ScriptEngine::transmitted(std::span<const TxToken> tokens) {
  for (const TxToken& token : tokens) ++returned[token.region];
}

void ScriptEngine::expire(Time) {
  ++expired;
  received_when_expired = received.size();
  deadline = kNever;
}

Frame make_bytes(std::size_t length, unsigned seed) {
  constexpr std::size_t kSeeds = 4'096, kLongest = 1U << 17;
  static const Frame kAll = [] {
    Frame all(kSeeds + kLongest);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 7 + i / 251);
    return all;
  }();
  EXPECT_LE(length, kLongest);
  const auto* const first = kAll.data() + seed * 41 % kSeeds;
  return {first, first + length};
}

Frame make_frame(const MacAddr& to, const MacAddr& from, std::size_t length, unsigned seed) {
  Frame frame = make_bytes(length, seed);
  for (std::size_t i = 0; i < 6; ++i) {
    frame[i] = std::byte{to.octets[i]};
    frame[6 + i] = std::byte{from.octets[i]};
  }
  frame[12] = frame[13] = std::byte{0x81};
  return frame;
}

Frame join(const Frame& head, const Frame& rest) {
  Frame whole = head;
  whole.insert(whole.end(), rest.begin(), rest.end());
  return whole;
}

std::uint64_t counter(const Port& port, const std::string& name) {
  for (const PortCounter& each : port.counters()) {
    if (each.name == name) return each.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

void RecordingTap::frame(Bytes head, Bytes rest, bool was_sent) {
  Frame whole(head.begin(), head.end());
  whole.insert(whole.end(), rest.begin(), rest.end());
  (was_sent ? sent : received).push_back(std::move(whole));
}

}  // namespace stp::port
