// SPDX-License-Identifier: BSD-3-Clause
// A link without a NIC: frames that the Node sends arrive at itself in the next turn, as on a loop.
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "dpdk_port/port.h"

namespace stp::test {

class TestPort : public port::Port {
 public:
  TestPort() {
    info_.link = "test";
    info_.device = "test";
    info_.driver = "none";
    info_.mac = MacAddr{{2, 0, 0, 0, 0, 1}};
    info_.mtu = 9'000;
    info_.max_stu = 13;
    info_.attaches = true;
    set_what_may_change();
  }

  // While set, the link behaves as if it still read the frames to send.
  std::atomic<bool> keeps_frames = false;
  // While set, sent frames are lost.
  std::atomic<bool> cut = false;
  // Added to the clock for the Node, so that tests need not wait for seconds.
  Time ahead = 0;
  std::atomic<port::LinkState> link_state = port::LinkState::kUp;
  // The address and the speed of the link from the next turn on.
  std::atomic<std::uint32_t> address = 0x0a090001;
  std::atomic<unsigned> megabits = 0;
  // Readable while frames wait; -1: nothing tells.
  int wakes_by = -1;
  // The station that answers address resolution, or nullopt if there is none.
  std::optional<MacAddr> neighbour;
  // Whether that station takes a place in a table, as those over UDP do that are new.
  bool new_neighbour = false;

  [[nodiscard]] const port::PortInfo& info() const override { return info_; }

  unsigned poll(Node& node, Time clock) override {
    const auto now = clock + ahead;
    set_what_may_change();
    auto arrived = std::move(on_wire_);
    on_wire_.clear();
    disturb(arrived);
    std::vector<LoopedFrame> burst;
    for (const auto& frame : arrived) burst.push_back({frame, {}});
    if (!burst.empty()) node.receive_looped(burst, now);
    if (now >= node.next_deadline()) node.expire(now);
    const auto sent = send(node, now);
    if (!keeps_frames) give_back(node);
    return static_cast<unsigned>(burst.size()) + sent;
  }

  void becomes_internet() { info_.internet = true; }

  std::optional<MacAddr> resolve(port::Ipv4, Time) override { return neighbour; }
  std::optional<MacAddr> find_station(const port::InternetAddress& address, Time now,
                                      bool* is_new) override {
    const auto found = Port::find_station(address, now, nullptr);
    if (is_new != nullptr) *is_new = new_neighbour;
    return found;
  }
  void set_tap(port::Tap* tap) override { tap_ = tap; }
  [[nodiscard]] std::vector<port::PortCounter> counters() const override {
    return {{"test_frames", frames_}};
  }
  [[nodiscard]] port::LinkState state() const override { return link_state; }
  [[nodiscard]] int wake_fd() const override { return wakes_by; }

 protected:
  using Frames = std::vector<std::vector<std::byte>>;
  // Changes the frames of one turn before they arrive.
  virtual void disturb(Frames&) {}

 private:
  void set_what_may_change() {
    info_.address.reset();
    if (address != 0) info_.address = port::Ipv4{address};
    info_.megabits = megabits;
  }
  unsigned send(Node& node, Time now) {
    unsigned sent = 0;
    head_.resize(node.frame_room());
    for (;; ++sent) {
      TxFrame frame;
      frame.head = head_.data();
      if (node.transmit({&frame, 1}, now) == 0) return sent;
      const Bytes head{frame.head, frame.head_length};
      if (tap_ != nullptr) tap_->frame(head, frame.attached, true);
      auto& copy = on_wire_.emplace_back(head.begin(), head.end());
      copy.insert(copy.end(), frame.attached.begin(), frame.attached.end());
      if (cut) on_wire_.pop_back();
      if (frame.token.region != kNoneId) kept_.push_back(frame.token);
      ++frames_;
    }
  }
  void give_back(Node& node) {
    for (; !kept_.empty(); kept_.pop_front()) node.transmitted(kept_.front());
  }

  port::PortInfo info_;
  port::Tap* tap_ = nullptr;
  Frames on_wire_;
  std::deque<TxToken> kept_;
  std::vector<std::byte> head_;
  std::uint64_t frames_ = 0;
};

}  // namespace stp::test
