// SPDX-License-Identifier: BSD-3-Clause
// Replaces a Node: sends the frames that it is given, and remembers the frames that arrive and the
// tokens that are returned.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/port.h"

namespace stp::port {

using Frame = std::vector<std::byte>;

class ScriptEngine final : public Engine {
 public:
  void send(Frame frame) { outgoing_.push_back({.head = std::move(frame)}); }
  void send_to_stranger(Frame frame) {
    outgoing_.push_back(
        {.head = std::move(frame), .for_stranger = true, .presence = Presence::kClaimed});
  }
  void send_to_silent(Frame frame) {
    outgoing_.push_back({.head = std::move(frame), .presence = Presence::kNamed});
  }
  void send_to_be_marked(Frame frame) {
    outgoing_.push_back({.head = std::move(frame), .may_be_marked = true});
  }
  // The caller must keep the memory until its token is returned.
  void send_attached(Frame head, Bytes memory, RegionId region) {
    outgoing_.push_back({.head = std::move(head), .attached = memory, .token = {1, region}});
  }

  void receive(std::span<const Bytes> burst, Time now) override;
  void receive_looped(std::span<const LoopedFrame> burst, Time now) override;
  void receive_apart(std::span<const LoopedFrame> burst, Time now) override {
    for (const LoopedFrame& frame : burst) {
      apart += frame.attached.size();
      if (frame.marked) ++marked;
    }
    receive_looped(burst, now);
  }
  std::size_t transmit(std::span<TxFrame> frames, Time now) override;
  void transmitted(std::span<const TxToken> tokens) override;
  [[nodiscard]] Time next_deadline() const override { return deadline; }
  void expire(Time now) override;

  std::vector<Frame> received;
  unsigned marked = 0;                    // frames received
  std::size_t apart = 0;                  // bytes received apart from the heads of their frames
  std::map<RegionId, unsigned> returned;  // how often each token was returned
  Frame answer;                           // if not empty, sent for each frame that arrives
  Time deadline = kNever;
  unsigned expired = 0;
  std::size_t received_when_expired = 0;
  [[nodiscard]] std::size_t waiting() const { return outgoing_.size(); }

 private:
  struct Outgoing {
    Frame head;
    Bytes attached{};
    TxToken token{};
    bool for_stranger = false, may_be_marked = false;
    Presence presence = Presence::kProven;
  };
  std::deque<Outgoing> outgoing_;
};

// A frame with STP's EtherType and a payload that differs between frames.
Frame make_frame(const MacAddr& to, const MacAddr& from, std::size_t length, unsigned seed = 0);
// Bytes that differ between pieces of memory.
Frame make_bytes(std::size_t length, unsigned seed);
Frame join(const Frame& head, const Frame& rest);

std::uint64_t counter(const Port& port, const std::string& name);

// A Tap that keeps what it sees.
class RecordingTap final : public Tap {
 public:
  void frame(Bytes head, Bytes rest, bool was_sent) override;
  std::vector<Frame> sent, received;
};

}  // namespace stp::port
