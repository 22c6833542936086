// SPDX-License-Identifier: BSD-3-Clause
// Requesters over IP, whose address may be false: until one has shown that it is there, it gets no
// more than it sends (docs/protocol.md, 13.21).
#include <map>

#include "stp/node/connection/strangers.h"
#include "stp/wire/padding.h"
#include "tests/stp/node/connection/strangers_fixture.h"
#include "tests/stp/node/some_ways.h"

namespace stp::test::strangers_over_ip_test {
namespace {

using wire::Op;

constexpr unsigned kMaxStu = 13;

OptionPayload words(int byte) {
  OptionPayload option;
  option.emplace().fill(static_cast<std::byte>(byte));
  return option;
}

// What a requester can send: as this version does, as one before it, or without padding.
struct Kind {
  const char* name;
  unsigned stu;
  bool proves;
  bool option;
};
constexpr std::array kKinds{
    Kind{"as ever", kMaxStu, true, false}, Kind{"short", wire::kMinMaxStu, true, true},
    Kind{"without a promise", 10, false, false}, Kind{"older", 0, false, false},
    Kind{"older, with option payload", 0, false, true}};

class StrangersOverIp : public Strangers {
 protected:
  explicit StrangersOverIp(SharedWays* ways = nullptr)
      : Strangers({.mac = {},
                   .max_stu = kMaxStu,
                   .vlan = {},
                   .attach_from = 512,
                   .ways = ways,
                   .marks = ways != nullptr,
                   .padded_requests = true,
                   .sources = &kEachStation}) {}

  // The bytes of such a datagram, and of the headers of IPv4 and UDP.
  static std::size_t bytes_of(const Frame& frame) {
    const auto payload = frame.size() - wire::kEthernetSize;
    return 28 + (payload == wire::kMinPayload ? wire::kHeaderSize : payload);
  }
  static wire::Header request(const Kind& kind, std::uint32_t key, std::uint32_t uport = 3000) {
    auto h = rc(key);
    h.d_id = uport;
    if (kind.stu == 0) return h;
    h.sync = kind.stu;
    h.b_num =
        wire::Padding{.known = true, .option = kind.option, .proves = kind.proves, .stu = kind.stu}
            .word();
    return h;
  }
  void ask(const MacAddr& from, const Kind& kind, const wire::Header& h) {
    std::vector<std::byte> payload(kind.option ? wire::kOptionSize : 0, std::byte{'o'});
    if (kind.stu != 0) payload.resize(wire::padded_length(kind.stu) - wire::kHeaderSize);
    balance_[from] += static_cast<std::ptrdiff_t>(28 + wire::kHeaderSize + payload.size());
    ++frames_[from];
    inject(b, from, h, payload);
    count();
  }
  // Takes what B sends. None of the requesters gets more than came from it, in bytes or frames.
  void count() {
    while (const auto frame = take(b)) {
      const auto said = parsed(*frame);
      last_[said.dst].push_back(said.header);
      EXPECT_GE(balance_[said.dst] -= static_cast<std::ptrdiff_t>(bytes_of(*frame)), 0)
          << "op " << static_cast<int>(said.header.op());
      EXPECT_GE(--frames_[said.dst], 0);
      EXPECT_EQ(b.presence, Presence::kClaimed) << "nobody may be there";
    }
  }
  // The user of B sends to all that it has accepted, and closes those that are older than a moment.
  void use() {
    serve();
    for (const auto id : accepted_) {
      VcInfo info{};
      if (b.node.vc_info(id, info) != 0 || info.state != VcState::kOpen) continue;
      UserChannel user(b.stocked.at(info.cookie - 1)->data());
      if (used_.insert(id).second) {
        EXPECT_TRUE(user.send(control(Op::kNoOperation)));
      } else {
        b.node.close(id, info.local_port % 2 == 0, now, words('c'));
      }
      b.node.kick(id);
    }
  }
  // The user of that connection of B sends something.
  void send_from_b(VcId id) {
    VcInfo info{};
    ASSERT_EQ(b.node.vc_info(id, info), 0);
    UserChannel user(b.stocked.at(info.cookie - 1)->data());
    ASSERT_TRUE(user.send(control(Op::kNoOperation)));
    b.node.kick(id);
  }
  void let_pass(Time span) {
    for (const auto until = now + span; now < until; now += 5 * kMillisecond) {
      if (b.node.next_deadline() <= now) b.node.expire(now);
      use();
      count();
    }
  }
  // Requests of all kinds, as often as an Initiator repeats them, by silent requesters.
  void all_kinds_ask(std::uint32_t uport = 3000) {
    for (Time wait = 10 * kMillisecond; wait <= kSecond; wait *= 2) {
      for (std::uint32_t i = 0; i < 4 * kKinds.size(); ++i)
        ask(mac(i + 1), kKinds[i % kKinds.size()],
            request(kKinds[i % kKinds.size()], 100 + i, uport));
      let_pass(wait);
    }
    let_pass(20 * kSecond);
    EXPECT_FALSE(last_.empty()) << "they are answered";
  }
  // The answers to a requester since the last call.
  std::vector<wire::Header> said_to(const MacAddr& to) { return std::exchange(last_[to], {}); }
  // An Initiator's answer to the CA.
  static wire::Header proof(const wire::Header& request, const wire::Header& ca) {
    auto h = wire::to_header(
        wire::RequestStateResponse{
            .r_slots = request.param,
            .sync = request.offset,
            .b_num = wire::kNoId,
            .i_id = stp::Strangers::sizes(wire::decode_as<wire::RequestConnection>(request)),
            .r_id = request.d_id},
        wire::flag::kReject);
    h.d_port = ca.s_port;
    h.s_port = request.s_port;
    h.d_key = ca.offset;
    return h;
  }

  std::map<MacAddr, std::ptrdiff_t> balance_, frames_;
  std::map<MacAddr, std::vector<wire::Header>> last_;
  std::set<VcId> used_;
};

// Each request comes once, from a network of its own.
// protocol: 5.40, 13.21
TEST_F(StrangersOverIp, who_does_not_show_itself_gives_way_where_a_user_inspects) {
  const auto& kind = kKinds[0];
  listen({.inspect = true});
  for (unsigned i = 0; i < kOfListener; ++i) ask(spoofed(i), kind, request(kind, i + 1)), serve();
  ASSERT_EQ(accepted_.size(), kOfListener);
  const auto crowd = accepted_;
  for (const auto id : crowd) ASSERT_EQ(b.node.admit(id, {}, now), 0);
  const auto ask_twice = [&] {
    for (unsigned i = 0; i < 2; ++i) ask(spoofed(100), kind, request(kind, 100));
    serve();
  };
  ask_twice();
  EXPECT_EQ(accepted_.size(), kOfListener) << "they have had no time to answer";
  now += 2 * kSecond - kMillisecond;
  ask_twice();
  EXPECT_EQ(accepted_.size(), kOfListener) << "an answer may have been lost";
  now += kMillisecond;
  ask_twice();
  EXPECT_EQ(accepted_.size(), kOfListener + 1);
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
}

// protocol: 13.21
TEST_F(StrangersOverIp, get_no_more_than_they_send_from_who_accepts) {
  listen();
  all_kinds_ask();
  EXPECT_EQ(b.node.vc_count(), 0U) << "none has shown that it is there";
}

// protocol: 13.21
TEST_F(StrangersOverIp, get_no_more_than_they_send_from_who_is_crowded) {
  accepts_ = false;
  listen({}, 3);
  all_kinds_ask();
  EXPECT_GT(b.count(Counter::kUnprovenEnded), 0U);
}

// protocol: 13.21
TEST_F(StrangersOverIp, get_no_more_than_they_send_if_nobody_listens) {
  all_kinds_ask();
}

// protocol: 5.28, 13.21
TEST_F(StrangersOverIp, get_no_more_than_they_send_from_who_decides) {
  for (const bool admits : {true, false}) {
    const auto from = b.open({.inspect = true});
    const std::uint32_t uport = admits ? 5000 : 6000;
    ASSERT_EQ(b.node.listen(from, uport), 0);
    for (std::uint32_t i = 0; i < kKinds.size(); ++i) {
      SCOPED_TRACE(kKinds[i].name);
      b.stock(from);
      const auto h = request(kKinds[i], uport + i, uport);
      ask(mac(50 + i), kKinds[i], h);
      VcId id = kNoneId;
      ASSERT_EQ(b.node.accept(from, id), 0);
      ASSERT_EQ(admits ? b.node.admit(id, words(1), now) : b.node.refuse(id, words(1), now), 0);
      if (admits) accepted_.insert(id);
      count();
      EXPECT_EQ(said_to(mac(50 + i)).size(), 1U);
      ask(mac(50 + i), kKinds[i], h);
      EXPECT_EQ(said_to(mac(50 + i)).size(), 1U);
    }
  }
  let_pass(20 * kSecond);
}

// protocol: 13.21
TEST_F(StrangersOverIp, get_what_was_sent_to_them_once_they_have_answered) {
  for (const bool at_once : {false, true}) {
    if (listener == kNoneId) listen();
    const auto h = request(kKinds[0], at_once ? 5 : 4);
    ask(mac(1), kKinds[0], h);
    serve();
    const auto id = *accepted_.rbegin();
    send_from_b(id);
    b.node.close(id, at_once, now);
    count();
    const auto ca = said_to(mac(1));
    ASSERT_EQ(ca.size(), 1U);
    now += kSecond;
    inject(b, mac(1), proof(h, ca[0]));
    std::vector<Op> ops;
    for (const auto& said : answers()) ops.push_back(said.op());
    EXPECT_EQ(ops, at_once ? std::vector{Op::kRequestDisconnect}
                           : (std::vector{Op::kNoOperation, Op::kRequestDisconnect}));
  }
}

// protocol: 5.38, 13.21
TEST_F(StrangersOverIp, prove_themselves_under_pressure_without_being_asked) {
  listen();
  fill();
  const auto h = request(kKinds[0], 4711);
  ask(mac(77), kKinds[0], h);
  const auto ca = said_to(mac(77));
  ASSERT_EQ(ca.size(), 1U) << "no RS";
  // Others displace what is kept of it.
  for (unsigned i = 0; i < 5'000; ++i) {
    now += 250 * kMicrosecond;
    ask(spoofed(1'000 + i), kKinds[1], request(kKinds[1], 9));
  }
  inject(b, mac(77), proof(h, ca[0]));
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
}

// An RS follows only when they have asked twice.
// protocol: 5.39, 13.21
TEST_F(StrangersOverIp, of_older_versions_are_asked_under_pressure_when_they_ask_again) {
  listen();
  fill();
  const auto h = request(kKinds[2], 4711);
  for (unsigned i = 0; i < 6; ++i) {
    ask(mac(77), kKinds[2], h);
    EXPECT_EQ(said_to(mac(77)).size(), i % 2 == 0 ? 0U : 2U);
  }
}

// protocol: 5.40, 13.21
TEST_F(StrangersOverIp, learn_that_they_have_lost_their_place_when_they_answer) {
  accepts_ = false;
  listen({}, 1);
  const auto h = request(kKinds[0], 4711);
  ask(mac(77), kKinds[0], h);
  const auto ca = said_to(mac(77));
  ASSERT_EQ(ca.size(), 1U);
  for (unsigned i = 0; i < 3; ++i, now += 15 * kMillisecond)
    ask(mac(78), kKinds[0], request(kKinds[0], 4712));
  EXPECT_EQ(b.count(Counter::kUnprovenEnded), 1U);
  EXPECT_TRUE(said_to(mac(77)).empty());
  inject(b, mac(77), proof(h, ca[0]));
  const auto end = answers();
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].op(), Op::kRequestDisconnect);
  EXPECT_EQ(end[0].d_key, 4711U);
  EXPECT_EQ(end[0].s_port, ca[0].s_port);
}

// Some ways are shared with others; a question about one costs calls of the kernel.
class StrangersFromAfar : protected HasWays, public StrangersOverIp {
 protected:
  StrangersFromAfar() : StrangersOverIp(&ways) { ways.shared = {mac(1), mac(77)}; }
  [[nodiscard]] bool newest_yields() { return newest().yields == true; }
};

// protocol: 13.9
TEST_F(StrangersFromAfar, are_not_asked_about_before_they_have_shown_that_they_are_there) {
  listen();
  const auto h = request(kKinds[0], 4711);
  for (std::uint32_t i = 1; i < 40; ++i) ask(mac(i), kKinds[0], h);
  EXPECT_TRUE(ways.asked.empty());
  ask(mac(1), kKinds[0], h);
  const auto ca = said_to(mac(1));
  ASSERT_FALSE(ca.empty());
  inject(b, mac(1), proof(h, ca[0]));
  EXPECT_EQ(ways.asked, std::vector{mac(1)});
  VcInfo info{};
  for (VcId id = b.node.vc_after(0); id != kNoneId; id = b.node.vc_after(info.local_port)) {
    ASSERT_EQ(b.node.vc_info(id, info), 0);
    EXPECT_EQ(info.yields, info.peer_mac == mac(1) ? std::optional(true) : std::nullopt);
  }
}

// protocol: 13.9
TEST_F(StrangersFromAfar, yield_also_if_they_have_shown_it_before_they_had_a_connection) {
  listen();
  fill();
  const auto h = request(kKinds[0], 4711);
  ask(mac(77), kKinds[0], h);
  const auto ca = said_to(mac(77));
  ASSERT_EQ(ca.size(), 1U);
  EXPECT_EQ(ways.asked_about(mac(77)), 0);
  inject(b, mac(77), proof(h, ca[0]));
  ASSERT_EQ(b.count(Counter::kRcProven), 1U);
  EXPECT_TRUE(newest_yields());
}

// protocol: 13.22
TEST_F(StrangersFromAfar, send_and_get_nothing_that_may_be_marked_if_their_ca_did_not_say_so) {
  listen();
  fill();
  auto h = request(kKinds[0], 4711);
  auto padding = wire::padding_of(h);
  padding.heeds = true;
  h.b_num = padding.word();
  ask(mac(77), kKinds[0], h);
  const auto ca = said_to(mac(77));
  ASSERT_EQ(ca.size(), 1U);
  EXPECT_FALSE(wire::padding_of(ca[0]).heeds);
  inject(b, mac(77), proof(h, ca[0]));
  ASSERT_EQ(b.count(Counter::kRcProven), 1U);
  EXPECT_TRUE(newest_yields());
  EXPECT_FALSE(ways.tells_marks);
}

// A connects, over a way that loses some frames.
class ProofOverIp : public StrangersOverIp {
 protected:
  // Losing the first `lost` frames of A that are no RC.
  void connect_losing(unsigned lost) {
    if (listener == kNoneId) listen();
    endpoint_a = a.open();
    wire = [lost](const Frame& frame, bool from_a) mutable -> unsigned {
      const bool counts = from_a && parsed(frame).header.op() != Op::kRequestConnection;
      return counts && lost != 0 && lost-- != 0 ? 0 : 1;
    };
    begin_connect();
    settle();
    serve();
  }
};

// protocol: 13.21
TEST_F(ProofOverIp, is_what_an_initiator_sends_at_once_and_again_until_it_hears_something) {
  for (const unsigned lost : {0U, 1U, 2U, 5U}) {
    SCOPED_TRACE(lost);
    connect_losing(lost);
    const auto id = *accepted_.rbegin();
    send_from_b(id);
    pass(100 * kMillisecond);
    EXPECT_TRUE(get(ca)) << "B may send first";
    seen.clear();
    pass(kSecond);
    EXPECT_TRUE(seen.empty());
    ASSERT_EQ(a.node.close(ca.id, false, now), 0);
    settle();
    a.stocked.push_back(std::move(ca.memory));
  }
}

// protocol: 13.21
TEST_F(ProofOverIp, makes_the_connection_under_pressure) {
  listen();
  fill();
  connect_losing(0);
  EXPECT_EQ(b.count(Counter::kRcProven), 1U);
  pass(10 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
}

}  // namespace
}  // namespace stp::test::strangers_over_ip_test
