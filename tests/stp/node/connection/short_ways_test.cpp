// SPDX-License-Identifier: BSD-3-Clause
// Ways that lose what is longer than they carry, without a word (docs/protocol.md, 13.20).

#include "stp/node/connection/short_ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "stp/node/connection/strangers.h"
#include "stp/wire/padding.h"
#include "tests/stp/node/connection/strangers_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

constexpr unsigned kMaxStu = 13;
// The third RC, after 10 and 20 ms, is the first one that has all lengths.
constexpr Time kSearch = 31 * kMillisecond;
// What carries the datagrams of an MTU of 1450, and those of any.
constexpr std::size_t kOverlay = 1450 - 28, kAnything = ~std::size_t{0};

NodeConfig config_of(unsigned max_stu, bool pads) {
  return {.mac = {}, .max_stu = max_stu, .vlan = {}, .attach_from = 512, .padded_requests = pads};
}

// A connects to B, which accepts. Both pad, unless a test says otherwise.
class ShortWay : public TwoNodes {
 protected:
  ShortWay() : ShortWay(config_of(kMaxStu, true), config_of(kMaxStu, true)) {}
  ShortWay(const NodeConfig& of_a, const NodeConfig& of_b) : TwoNodes(of_a, of_b) {}

  void SetUp() override {
    listener = b.open();
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    b.stock(listener, 16);
    endpoint_a = a.open();
  }
  static std::size_t length(const Frame& frame) { return frame.size() - wire::kEthernetSize; }
  // The longest datagrams that arrive at B, and at A. `lost`: what is lost besides.
  void narrow(std::size_t there, std::size_t back, Wire besides = {}) {
    wire = [=](const Frame& frame, bool from_a) -> unsigned {
      if (length(frame) > (from_a ? there : back)) return 0;
      return besides ? besides(frame, from_a) : 1;
    };
  }
  // Loses the first `count` frames of each of these operations.
  static Wire losing(std::vector<Op> ops, unsigned count) {
    return [=, lost = std::vector<unsigned>(ops.size())](const Frame& frame,
                                                         bool) mutable -> unsigned {
      const auto at = std::ranges::find(ops, parsed(frame).header.op()) - ops.begin();
      const auto index = static_cast<std::size_t>(at);
      return index < ops.size() && lost[index]++ < count ? 0 : 1;
    };
  }
  // The newest connection that B has.
  [[nodiscard]] std::optional<VcInfo> accepted() {
    std::optional<VcInfo> newest;
    VcInfo info{};
    for (VcId id = kNoneId; b.node.accept(listener, id) == 0;)
      if (b.node.vc_info(id, info) == 0) newest = info;
    return newest;
  }
  // The exponent of the STUs that both sides use; 0: they have no connection.
  unsigned agreed() {
    VcInfo here{};
    const auto there = accepted();
    if (a.node.vc_info(ca.id, here) != 0 || here.state != VcState::kOpen || !there) return 0;
    const auto at_a = std::min(here.local_max_stu, here.remote_max_stu);
    const auto at_b = std::min(there->local_max_stu, there->remote_max_stu);
    EXPECT_EQ(at_a, at_b) << "the two sides cut Blocks differently";
    EXPECT_EQ(there->local_key, here.remote_key);
    return at_a;
  }
  // The connections of before keep their channels.
  void dial() {
    if (ca.memory) a.stocked.push_back(std::move(ca.memory));
    begin_connect();
  }
  unsigned connect_in(Time span) {
    dial();
    pass(span);
    return agreed();
  }
  [[nodiscard]] std::vector<std::size_t> lengths(Op op) const {
    std::vector<std::size_t> all;
    for (const auto& frame : seen)
      if (parsed(frame).header.op() == op) all.push_back(length(frame));
    return all;
  }
};

using Lengths = std::vector<std::size_t>;

// protocol: 13.20
TEST_F(ShortWay, that_carries_everything_costs_no_frame_and_no_time) {
  EXPECT_EQ(connect_in(0), kMaxStu);
  EXPECT_EQ(lengths(Op::kRequestConnection), Lengths{40 + 8192 + 64});
  EXPECT_EQ(lengths(Op::kConnectionAnswer), Lengths{40 + 8192 + 64});
  EXPECT_EQ(seen.size(), 2U + 3U) << "and RSR, RS and RSR (13.21)";
  EXPECT_EQ(a.count(Counter::kWaysShort), 0U);
}

// protocol: 13.20
TEST_F(ShortWay, both_ways_has_a_connection_with_the_longest_stus_that_it_carries) {
  narrow(kOverlay, kOverlay);
  EXPECT_EQ(connect_in(kSearch), 10U);
  EXPECT_EQ(a.count(Counter::kWaysShort), 1U);
  EXPECT_EQ(a.count(Counter::kGhostCa), 0U);
  EXPECT_EQ(b.node.vc_count(), 1U);
}

// protocol: 13.20
TEST_F(ShortWay, of_every_length_is_found) {
  for (unsigned stu = wire::kMinMaxStu; stu <= kMaxStu; ++stu) {
    narrow(wire::padded_length(stu), wire::padded_length(stu));
    EXPECT_EQ(connect_in(kSecond), stu);
  }
  narrow(wire::padded_length(wire::kMinMaxStu) - 1, kAnything);
  EXPECT_EQ(connect_in(3 * kSecond), 0U) << "nothing that is padded passes";
}

// protocol: 13.20
TEST_F(ShortWay, is_remembered_and_then_costs_no_time_but_longer_ones_are_tried_again) {
  narrow(kOverlay, kOverlay);
  EXPECT_EQ(connect_in(kSearch), 10U);
  EXPECT_EQ(connect_in(0), 10U);
  wire = {};
  EXPECT_EQ(connect_in(0), kMaxStu) << "the way is as long again";
  seen.clear();
  EXPECT_EQ(connect_in(0), kMaxStu);
  EXPECT_EQ(lengths(Op::kRequestConnection).size(), 1U);
}

// protocol: 13.20
TEST_F(ShortWay, there_alone_decides_for_both) {
  narrow(kOverlay, kAnything);
  EXPECT_EQ(connect_in(kSearch), 10U);
  EXPECT_EQ(b.node.vc_count(), 1U);
}

// The first RC arrives and makes a connection. Its answer does not. protocol: 13.20
TEST_F(ShortWay, back_alone_is_found_by_a_second_connection_and_the_first_one_ends) {
  narrow(kAnything, kOverlay);
  EXPECT_EQ(connect_in(kSecond / 2), 10U);
  EXPECT_GE(a.count(Counter::kGhostCa), 1U);
  EXPECT_EQ(b.count(Counter::kVcOpened), 2U);
  pass(5 * kSecond);
  EXPECT_EQ(b.count(Counter::kVcClosed), 1U);
  EXPECT_EQ(b.count(Counter::kVcFailed), 0U);
  EXPECT_EQ(a.count(Counter::kVcFailed), 0U);
}

// Answers come when the RC has been sent for the last time, or nearly so. protocol: 13.20
TEST_F(ShortWay, back_alone_is_found_however_long_the_way_takes) {
  for (const auto round_trip : {300U, 700U, 1'200U}) {
    SCOPED_TRACE(round_trip);
    struct Late {
      Time due;
      bool from_a;
      Frame frame;
    };
    std::vector<Late> late;
    narrow(kAnything, kOverlay, [&](const Frame& frame, bool from_a) -> unsigned {
      late.push_back({now + round_trip * kMillisecond / 2, from_a, frame});
      return 0;
    });
    dial();
    for (unsigned ms = 0; ms < 4 * round_trip + 3'000; ++ms) {
      const auto arrived = std::exchange(late, {});
      for (const auto& each : arrived)
        if (each.due > now)
          late.push_back(each);
        else
          arrive(each.from_a ? b : a, each.frame);
      pass(kMillisecond);
    }
    VcInfo here{};
    ASSERT_EQ(a.node.vc_info(ca.id, here), 0);
    EXPECT_EQ(here.state, VcState::kOpen);
    EXPECT_EQ(std::min(here.local_max_stu, here.remote_max_stu), 10U);
  }
}

// Under the Key that it has chosen there can be no second connection. protocol: 13.20
TEST_F(ShortWay, back_alone_is_taken_as_it_is_by_a_user_that_has_chosen_its_key) {
  endpoint_a = a.open({.key = 4'711});
  narrow(kAnything, kOverlay);
  EXPECT_EQ(connect_in(kSecond / 2), kMaxStu);
  EXPECT_EQ(b.node.vc_count(), 1U);
}

// protocol: 13.20
TEST_F(ShortWay, is_not_forgotten_because_of_a_user_that_has_chosen_its_key) {
  narrow(kOverlay, kOverlay);
  EXPECT_EQ(connect_in(kSearch), 10U);
  narrow(kAnything, kOverlay);
  endpoint_a = a.open({.key = 4'711});
  EXPECT_EQ(connect_in(kSecond / 2), kMaxStu);
  narrow(kOverlay, kOverlay);
  endpoint_a = a.open();
  EXPECT_EQ(connect_in(0), 10U);
}

// protocol: 13.20
TEST_F(ShortWay, is_not_forgotten_because_of_a_user_with_short_stus) {
  narrow(kOverlay, kOverlay);
  EXPECT_EQ(connect_in(kSearch), 10U);
  endpoint_a = a.open({.max_stu = 10});
  EXPECT_EQ(connect_in(0), 10U);
  endpoint_a = a.open();
  EXPECT_EQ(connect_in(0), 10U);
}

TEST_F(ShortWay, is_not_found_where_a_frame_is_lost_by_chance) {
  for (const Op op : {Op::kRequestConnection, Op::kConnectionAnswer}) {
    narrow(kAnything, kAnything, losing({op}, 1));
    EXPECT_EQ(connect_in(kSecond), kMaxStu);
  }
  narrow(kAnything, kAnything, losing({Op::kRequestConnection, Op::kConnectionAnswer}, 1));
  EXPECT_EQ(connect_in(kSecond), kMaxStu);
  EXPECT_EQ(a.count(Counter::kWaysShort), 0U);
  EXPECT_EQ(a.count(Counter::kGhostCa), 0U);
}

// An answer that is lost three times has the next one answer a shorter request.
TEST_F(ShortWay, is_not_taken_for_short_after_three_losses) {
  narrow(kAnything, kAnything, losing({Op::kConnectionAnswer}, 3));
  EXPECT_EQ(connect_in(kSecond), kMaxStu);
  EXPECT_EQ(b.count(Counter::kVcOpened), 1U);
}

TEST_F(ShortWay, is_not_found_where_the_listener_has_no_room_for_long) {
  for (std::uint64_t cookie = 0; b.node.unstock(listener, cookie);) continue;
  begin_connect();
  pass(400 * kMillisecond);
  b.stock(listener);
  pass(kSecond);
  EXPECT_EQ(agreed(), kMaxStu);
}

TEST_F(ShortWay, is_not_found_where_the_way_is_long_in_time) {
  begin_connect();
  std::vector<Frame> late;
  wire = [&](const Frame& frame, bool from_a) -> unsigned {
    if (from_a) late.push_back(frame);
    return from_a ? 0 : 1;
  };
  pass(200 * kMillisecond);
  ASSERT_GT(late.size(), 10U);
  wire = {};
  for (const auto& frame : std::exchange(late, {})) arrive(b, frame);
  pass(kSecond);
  EXPECT_EQ(agreed(), kMaxStu);
  EXPECT_EQ(b.node.vc_count(), 1U);
  EXPECT_EQ(a.count(Counter::kGhostCa), 0U);
}

// All bytes that a dial sends before it gives up. protocol: 13.20
TEST_F(ShortWay, to_nobody_gets_a_third_of_what_all_repeats_of_all_lengths_are) {
  std::size_t bytes = 0;
  wire = [&](const Frame& frame, bool) -> unsigned { return bytes += length(frame), 0; };
  dial();
  pass(3 * kSecond);
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  EXPECT_EQ(info.state, VcState::kFailed);
  EXPECT_LT(bytes, 34U * 1'024);
}

// protocol: 13.20
TEST_F(ShortWay, to_a_host_that_is_there_late_is_measured) {
  const auto opens = [this](Time from) {
    narrow(kOverlay, kOverlay, [this, from, begin = now](const Frame&, bool) -> unsigned {
      return now < begin + from ? 0 : 1;
    });
    endpoint_a = a.open();
    const auto stus = connect_in(2 * kSecond);
    wire = {};
    return stus;
  };
  for (const unsigned ms : {50U, 200U, 400U, 900U}) EXPECT_EQ(opens(ms * kMillisecond), 10U) << ms;
  EXPECT_EQ(b.count(Counter::kVcFailed), 0U);
  EXPECT_EQ(a.count(Counter::kBadKey), 0U);
}

// The answer to the question comes when the connection is open. protocol: 13.20
TEST_F(ShortWay, ends_nothing_by_an_answer_that_is_late) {
  Frame answer;
  wire = [&](const Frame& frame, bool from_a) -> unsigned {
    const bool asks = parsed(frame).header.op() == Op::kRequestStateResponse;
    return from_a && !asks ? 0 : 1;
  };
  begin_connect();
  pass(75 * kMillisecond);
  for (const auto& frame : seen)
    if (parsed(frame).header.op() == Op::kRequestDisconnect) answer = frame;
  ASSERT_FALSE(answer.empty());
  EXPECT_LE(length(answer), wire::kMinPayload);
  wire = {};
  pass(kSecond);
  ASSERT_EQ(agreed(), kMaxStu);
  arrive(a, answer);
  pass(kSecond);
  EXPECT_EQ(agreed(), 0U) << "it is accepted once";
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  EXPECT_EQ(info.state, VcState::kOpen);
}

// The longest RC comes when a shorter one has made the connection. protocol: 13.20
TEST_F(ShortWay, stays_short_for_a_connection_that_has_begun) {
  std::vector<Frame> held;
  wire = [&](const Frame& frame, bool from_a) -> unsigned {
    if (!from_a || length(frame) <= kOverlay) return 1;
    held.push_back(frame);
    return 0;
  };
  EXPECT_EQ(connect_in(kSearch), 10U);
  wire = {};
  for (const auto& frame : held) arrive(b, frame);
  pass(kSecond);
  EXPECT_EQ(b.node.vc_count(), 1U);
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  EXPECT_EQ(std::min(info.local_max_stu, info.remote_max_stu), 10U);
  EXPECT_EQ(a.count(Counter::kGhostCa), 0U);
}

// protocol: 5.28, 13.20
TEST_F(ShortWay, is_found_for_a_user_that_decides) {
  for (std::uint64_t cookie = 0; b.node.unstock(listener, cookie);) continue;
  ASSERT_EQ(b.node.close_endpoint(listener), 0);
  listener = b.open({.inspect = true});
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener, 16);
  narrow(kOverlay, kOverlay);
  begin_connect();
  pass(100 * kMillisecond);
  VcId id = kNoneId;
  ASSERT_EQ(b.node.accept(listener, id), 0);
  OptionPayload words;
  words.emplace().fill(std::byte{7});
  ASSERT_EQ(b.node.admit(id, words, now), 0);
  settle();
  VcInfo at_a{}, at_b{};
  ASSERT_EQ(a.node.vc_info(ca.id, at_a), 0);
  ASSERT_EQ(b.node.vc_info(id, at_b), 0);
  EXPECT_EQ(at_a.state, VcState::kOpen);
  EXPECT_EQ(at_a.peer_option, words) << "it stands before the padding";
  EXPECT_EQ(std::min(at_a.local_max_stu, at_a.remote_max_stu), 10U);
  EXPECT_EQ(std::min(at_b.local_max_stu, at_b.remote_max_stu), 10U);
}

// protocol: 5.19, 13.20
TEST_F(ShortWay, brings_the_option_payload_of_a_request) {
  OptionPayload words;
  words.emplace().fill(std::byte{9});
  ca.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
  ASSERT_EQ(a.node.connect(endpoint_a, kMacB, 3000, ca.memory->data(), 0, ca.id, now, words), 0);
  settle();
  const auto there = accepted();
  ASSERT_TRUE(there);
  EXPECT_EQ(there->peer_option, words);
}

// Its answer is no longer than what it answers, whatever the connection has. protocol: 13.20
TEST_F(ShortWay, gets_no_answer_that_is_longer_than_the_request) {
  begin_connect();
  const auto request = parsed(*take(a)).header;
  for (const unsigned stu : {13U, 8U, 11U}) {
    auto h = request;
    h.sync = stu;
    h.b_num = wire::Padding{.known = true, .stu = stu}.word();
    const std::vector<std::byte> padding(wire::padded_length(stu) - wire::kHeaderSize);
    inject(b, kMacA, h, padding);
    const auto answer = take(b);
    ASSERT_TRUE(answer);
    EXPECT_EQ(length(*answer), wire::padded_length(stu));
    EXPECT_EQ(wire::padding_of(parsed(*answer).header).asked, 13U) << "the first one counts";
    EXPECT_FALSE(take(b));
  }
  auto unpadded = request;
  unpadded.b_num = 0;
  inject(b, kMacA, unpadded);
  EXPECT_EQ(length(*take(b)), wire::kMinPayload);
  unpadded.b_num = wire::Padding{.known = true}.word();
  inject(b, kMacA, unpadded);
  EXPECT_FALSE(take(b)) << "a padded one comes, too";
}

TEST_F(ShortWay, is_not_believed_of_an_answer_to_what_was_not_asked) {
  begin_connect();
  const auto request = parsed(*take(a)).header;
  wire::Header answer = wire::to_header(
      wire::ConnectionAnswer{.r_slots = 64, .r_bufsize = 14, .r_key = 777, .r_max_stu = 16});
  answer.d_port = request.s_port;
  answer.s_port = 9;
  answer.d_key = request.offset;
  const auto say = [&](unsigned asked, unsigned stu) {
    answer.b_num = wire::Padding{.known = true, .asked = asked, .stu = stu}.word();
    const std::vector<std::byte> padding(wire::padded_length(stu) - wire::kHeaderSize);
    inject(a, kMacB, answer, padding);
  };
  wire = [](const Frame&, bool) { return 0U; };
  say(14, 14);
  EXPECT_EQ(a.count(Counter::kBadState), 1U);
  say(13, 14);
  EXPECT_EQ(a.count(Counter::kBadControlLength), 1U) << "longer than its request";
  EXPECT_EQ(ca.user.state(), ChannelState::kConnecting);
  say(13, 13);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
}

// protocol: 13.20
class ShortWayToOlder : public ShortWay {
 protected:
  ShortWayToOlder() : ShortWay(config_of(kMaxStu, true), config_of(kMaxStu, false)) {}
};

TEST_F(ShortWayToOlder, is_not_found_and_the_station_answers_the_request_without_padding) {
  EXPECT_EQ(connect_in(0), 0U);
  EXPECT_EQ(b.count(Counter::kBadControlLength), 1U);
  EXPECT_EQ(connect_in(11 * kMillisecond), kMaxStu);
  EXPECT_EQ(a.count(Counter::kWaysShort), 0U);
}

class ShortWayOfOlder : public ShortWay {
 protected:
  ShortWayOfOlder() : ShortWay(config_of(kMaxStu, false), config_of(kMaxStu, true)) {}
};

TEST_F(ShortWayOfOlder, is_not_found_and_it_gets_an_answer_without_padding) {
  EXPECT_EQ(connect_in(0), kMaxStu);
  EXPECT_EQ(lengths(Op::kConnectionAnswer), Lengths{wire::kMinPayload});
}

class ShortWayOfShortLink : public ShortWay {
 protected:
  ShortWayOfShortLink() : ShortWay(config_of(kMaxStu, true), config_of(10, true)) {}
};

TEST_F(ShortWayOfShortLink, needs_no_search_where_the_longer_request_arrives) {
  EXPECT_EQ(connect_in(0), 10U);
  EXPECT_EQ(lengths(Op::kConnectionAnswer), Lengths{wire::padded_length(10)});
  EXPECT_EQ(a.count(Counter::kWaysShort), 0U);
}

// B answers without keeping a connection: too many have not proven that they are there.
class ShortWayUnderPressure : public Strangers {
 protected:
  ShortWayUnderPressure() : Strangers(config_of(kMaxStu, true)) {}

  void SetUp() override {
    listen();
    fill();
    endpoint_a = a.open();
  }
  // Whether A and B have a connection with STUs of that exponent.
  void expect_connection(unsigned stu) {
    VcInfo at_a{}, at_b{};
    ASSERT_EQ(a.node.vc_info(ca.id, at_a), 0);
    ASSERT_EQ(at_a.state, VcState::kOpen);
    EXPECT_EQ(std::min(at_a.local_max_stu, at_a.remote_max_stu), stu);
    unsigned found = 0;
    for (auto id = b.node.vc_after(0); id != kNoneId; id = b.node.vc_after(at_b.local_port)) {
      ASSERT_EQ(b.node.vc_info(id, at_b), 0);
      if (at_b.peer_mac != kMacA) continue;
      ++found;
      EXPECT_EQ(std::min(at_b.local_max_stu, at_b.remote_max_stu), stu);
      EXPECT_EQ(at_b.local_key, at_a.remote_key);
    }
    EXPECT_EQ(found, 1U);
  }
};

// protocol: 5.36, 13.20
TEST_F(ShortWayUnderPressure, is_found_and_proven) {
  wire = [](const Frame& frame, bool) -> unsigned {
    return frame.size() - wire::kEthernetSize <= kOverlay ? 1 : 0;
  };
  begin_connect();
  pass(200 * kMillisecond);
  expect_connection(10);
  EXPECT_GT(b.count(Counter::kRcProven), 0U);
}

// The Key is that of the RC whose answer came, which is not the last one. protocol: 5.36, 13.20
TEST_F(ShortWayUnderPressure, is_proven_for_the_request_whose_answer_has_come) {
  unsigned requests = 0;
  wire = [&](const Frame& frame, bool) -> unsigned {
    const auto op = parsed(frame).header.op();
    const bool question = op == Op::kRequestState || op == Op::kRequestStateResponse;
    requests += op == Op::kRequestConnection ? 1 : 0;
    return question || (op == Op::kRequestConnection && requests < 3) ? 0 : 1;
  };
  begin_connect();
  pass(35 * kMillisecond);
  ASSERT_GT(requests, 6U);
  ASSERT_EQ(ca.user.state(), ChannelState::kOpen);
  put(a, ca, control(Op::kNoOperation));
  settle();
  expect_connection(kMaxStu);
}

// An older station asks, about the RC of another length. protocol: 5.37, 13.20
TEST_F(ShortWay, is_proven_for_the_request_whose_answer_has_come) {
  narrow(kOverlay, kOverlay);
  EXPECT_EQ(connect_in(kSearch), 10U);
  VcInfo here{};
  ASSERT_EQ(a.node.vc_info(ca.id, here), 0);
  const auto sizes_for = [&](unsigned stu) {
    return stp::Strangers::sizes({.i_slots = static_cast<std::uint16_t>(here.local_slots),
                                  .i_bufsize = here.local_bufsize,
                                  .i_max_stu = stu});
  };
  auto rs = wire::to_header(wire::RequestState{
      .sync = here.local_key, .b_num = wire::kNoId, .r_id = 3000, .i_id = sizes_for(9)});
  rs.d_port = here.local_port;
  rs.s_port = here.remote_port;
  rs.d_key = here.local_key;
  inject(a, kMacB, rs);
  const auto frame = take(a);
  ASSERT_TRUE(frame);
  const auto rsr = wire::decode_as<wire::RequestStateResponse>(parsed(*frame).header);
  EXPECT_EQ(rsr.i_id, sizes_for(9)) << "as it was asked";
  for (unsigned i = 0; i < 20; ++i) {
    now += kMillisecond;
    a.node.expire(now);
    while (const auto again = take(a)) {
      const auto said = parsed(*again).header;
      if (said.op() == Op::kRequestStateResponse) {
        EXPECT_EQ(said.d_id, sizes_for(10)) << "repeats name what the CA has told";
      }
    }
  }
}

// Those of several lengths come together, so one is no repeat of another. protocol: 5.39, 13.20
TEST(RequestsOfSeveralLengths, are_none_that_came_before) {
  stp::Strangers strangers;
  SeededRandom random(1);
  strangers.allocate();
  strangers.prepare(random);
  Requester asker;
  asker.mac = MacAddr::from_u64(1);
  asker.port = 5;
  asker.rc = {.i_key = 6, .i_max_stu = 10};
  asker.padded = true;
  EXPECT_FALSE(strangers.asked_before(asker));
  asker.rc.i_max_stu = 9;
  EXPECT_FALSE(strangers.asked_before(asker));
  asker.rc.i_max_stu = 10;
  EXPECT_TRUE(strangers.asked_before(asker));
}

TEST(ShortWays, forget_a_station_in_time_and_hold_a_bounded_number) {
  ShortWays ways;
  const auto station = [](std::uint64_t n) { return MacAddr::from_u64(0x020000000000 + n); };
  EXPECT_FALSE(ways.has(station(1), 0));
  ways.add(station(1), 0);
  EXPECT_TRUE(ways.has(station(1), ShortWays::kMemory - 1));
  EXPECT_FALSE(ways.has(station(1), ShortWays::kMemory));
  ways.add(station(1), 0);
  ways.remove(station(1));
  EXPECT_FALSE(ways.has(station(1), 1));
  for (std::uint64_t n = 0; n < 1'000; ++n) ways.add(station(n), 0);
  std::size_t held = 0;
  for (std::uint64_t n = 0; n < 1'000; ++n) held += ways.has(station(n), 1) ? 1 : 0;
  EXPECT_LE(held, ShortWays::kCapacity);
  EXPECT_TRUE(ways.has(station(999), 1));
}

}  // namespace
}  // namespace stp::test
