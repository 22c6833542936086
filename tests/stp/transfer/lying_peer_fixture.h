// SPDX-License-Identifier: BSD-3-Clause
// A peer that answers everything but does nothing, and the requests that leave for it. There is no
// Node: the peer's headers are delivered directly, and time is simulated.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <utility>

#include "stp/transfer/sequencer.h"

namespace stp::test {

class LyingPeer : public ::testing::Test {
 protected:
  using Kind = Completion::Kind;
  using Op = wire::Op;

  static constexpr Time kHour = 3600 * kSecond;
  // The limits of docs/managed.md. For some operations the time of END is added.
  static constexpr Time kGet = 11 * kSecond, kWait = 31 * kSecond, kEnd = 11 * kSecond;
  // Intervals double from a millisecond up to a second.
  static constexpr unsigned most_repeats(Time span) {
    return 12 + static_cast<unsigned>(span / kSecond);
  }

  static constexpr std::uint32_t kTheirId = 500, kSlots = 100;
  static constexpr Landing kLanding{3, {7, 0}, 50'000};

  Sequencer sequencer{SequencerConfig{.max_block = 13, .remote_slots = kSlots}};
  Time now = kSecond;
  std::function<void(const wire::Header&)> hears = [this](const wire::Header& h) { answer(h); };
  std::map<Op, unsigned> left;  // requests by operation
  std::map<std::pair<Kind, Context>, std::pair<Time, int>> ended;
  std::uint32_t b_num_of_states = wire::kNoId;
  bool echoes_b_num = false;
  bool takes = true;  // whether the Node takes requests

  static wire::Header header(Op op, std::uint16_t flags = 0) {
    wire::Header h;
    h.op_flags = wire::op_flags(op, flags);
    return h;
  }
  void say(const wire::Header& h) {
    ReceivedEntry entry{};
    entry.header = h;
    sequencer.receive(entry, now);
  }
  // It ends what it has asked for by that number.
  void say_end(std::uint32_t s_id) {
    auto h = header(Op::kEnd);
    h.d_id = wire::kNoId;
    h.s_id = s_id;
    say(h);
  }
  void say_state(const wire::Header& to, std::uint32_t b_seq) {
    auto h = header(Op::kRequestStateResponse);
    h.param = kSlots;
    h.offset = b_seq;
    h.sync = to.sync;
    h.b_num = echoes_b_num ? to.b_num : b_num_of_states;
    h.d_id = our_id;
    h.s_id = kTheirId;
    say(h);
  }
  void grant(const wire::Header& rts, std::uint32_t b_num = 0) {
    auto h = header(Op::kClearToSend);
    h.param = 12;
    h.mx = 1;
    h.b_num = b_num;
    h.d_id = rts.s_id;
    h.s_id = kTheirId;
    say(h);
  }
  void see(const wire::Header& request) {
    auto h = header(Op::kRequestAnswer);
    h.d_id = request.s_id;
    h.s_id = kTheirId;
    say(h);
  }
  void open(const wire::Header& rmr) {
    auto h = header(Op::kMemoryRegionAvailable);
    h.param = 4;
    h.mx = 1;
    h.set_t_len(1 << 20);
    h.d_id = our_id = rmr.s_id;
    h.s_id = kTheirId;
    say(h);
  }
  void offer(std::uint32_t answers = wire::kNoId) {
    auto h = header(Op::kRequestToSend);
    h.param = 2;
    h.mx = 12;
    h.set_t_len(kLanding.length);
    h.d_id = answers;
    h.s_id = kTheirId;
    say(h);
  }
  // Answers everything and stores nothing.
  void answer(const wire::Header& h) {
    switch (h.op()) {
      case Op::kRequestToSend:
        our_id = h.s_id;
        return grant(h);
      case Op::kRequestToReceive:
        return see(h);
      case Op::kRequestMemoryRegion:
        return open(h);
      case Op::kData:
        if (h.has(wire::flag::kSendState) && answers_data) say_state(h, 0);
        return;
      case Op::kRequestState:
        return say_state(h, 0);
      case Op::kGet: {  // DATA of the right name at another place; a refusal of another region
        auto data = header(Op::kData, wire::flag::kLast);
        data.mx = h.mx;
        data.bufx = h.sync + 1;
        data.b_num = h.s_id;
        data.d_id = h.d_id;
        say(data);
        auto no = h;
        no.op_flags |= wire::flag::kReject;
        ++no.d_id;
        return say(no);
      }
      case Op::kEnd: {  // EA of something else
        auto ack = header(Op::kEndAck);
        ack.d_id = h.s_id + 1000;
        ack.s_id = h.d_id;
        return say(ack);
      }
      default:
        return;
    }
  }
  void work() {
    for (bool moved = true; moved;) {
      moved = false;
      SendEntry out;
      while (sequencer.transmit(out, now)) {
        moved = true;
        ++handed;
        ++left[out.header.op()];
        if (!takes) continue;
        sequencer.taken(++taken);
        if (hears) hears(out.header);
      }
      Completion c{};
      while (sequencer.next_completion(c)) {
        ended[{c.kind, c.context}] = {now, c.status};
        if (c.kind == Kind::kRegion && c.status == 0) region = c.region;
      }
    }
  }
  void run(Time span) {
    const auto end = now + span;
    sequencer.expire(now);
    for (work(); sequencer.next_deadline() <= end; work()) {
      now = std::max(now, sequencer.next_deadline());
      sequencer.expire(now);
    }
    now = end;
  }
  // Expects that the operation ends with a timeout within `bound`.
  void expect_timeout(Kind kind, Context context, Time bound) {
    const auto begun = now;
    run(bound + kHour);
    ASSERT_TRUE(ended.contains({kind, context}));
    const auto [when, status] = ended[{kind, context}];
    EXPECT_EQ(status, -ETIMEDOUT);
    EXPECT_LE(when - begun, bound);
  }
  void open_region() {
    ASSERT_EQ(sequencer.request_region(900, 1 << 20, 4), 0);
    run(kMillisecond);
    ASSERT_EQ(region.r_id, kTheirId);
    left.clear();
  }

  std::uint32_t our_id = 0, taken = 0, handed = 0;
  bool answers_data = true;
  RemoteRegion region;
};

}  // namespace stp::test
