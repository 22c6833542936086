// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/joined.h"

#include <gtest/gtest.h>

#include "stp/wire/padding.h"
#include "tests/replay/checking.h"
#include "tests/replay/datagram.h"
#include "tests/replay/frame_file.h"
#include "tools/replay/check/checker.h"

namespace stp::replay::test {
namespace {

using wire::Op;

Octets short_one(Op op, std::uint16_t port = 101) {
  auto header = header_of(op);
  header.s_port = port;
  Octets out(wire::kHeaderSize);
  wire::encode(header, out.data());
  return out;
}
Octets with_body(Octets header, std::size_t size) {
  header.resize(header.size() + size, std::byte{0xa5});
  return header;
}
Octets joined(const std::vector<Octets>& all) {
  Octets out;
  for (const auto& each : all) out.insert(out.end(), each.begin(), each.end());
  return out;
}

struct Seen {
  std::vector<Op> ops;
  std::vector<std::size_t> stus;
  std::vector<std::uint64_t> numbers;
  bool doubted = false;
  std::vector<Finding> findings;
};
// What is read of a file with these frames, and found in them.
Seen read_all(const std::vector<Octets>& frames, std::size_t held = ~std::size_t{0}) {
  FrameFile file;
  std::uint32_t second = 1;
  for (const auto& frame : frames)
    file.add(second++, Bytes(frame).first(std::min(held, frame.size())),
             static_cast<std::uint32_t>(frame.size()));
  std::string error;
  auto capture = file.open(error);
  EXPECT_TRUE(capture) << error;
  Seen seen;
  Checker checker([&](const Finding& finding) { seen.findings.push_back(finding); });
  Decoder decoder;
  CapturedFrame captured;
  while (capture->next(captured)) {
    const auto frame = decoder.decode(captured);
    checker.frame(frame);
    seen.numbers.push_back(frame.number);
    seen.doubted = seen.doubted || frame.perhaps_joined;
    if (!frame.has_header) continue;
    seen.ops.push_back(frame.frame.header.op());
    seen.stus.push_back(frame.frame.stu.size());
  }
  return seen;
}

TEST(Joined, operations_come_apart_where_their_headers_say) {
  const auto rsr = short_one(Op::kRequestStateResponse), end = short_one(Op::kEnd);
  auto seen = read_all({datagram(joined({rsr, end, rsr})), datagram(rsr)});
  EXPECT_EQ(seen.ops, (std::vector{Op::kRequestStateResponse, Op::kEnd, Op::kRequestStateResponse,
                                   Op::kRequestStateResponse}));
  EXPECT_EQ(seen.numbers, (std::vector<std::uint64_t>{1, 1, 1, 2}));
  // With an option payload; the last is shorter.
  const auto nop = with_body(short_one(Op::kNoOperation), 32);
  seen = read_all({datagram(joined({nop, nop, rsr}), {.ipv6 = true})});
  EXPECT_EQ(seen.ops, (std::vector{Op::kNoOperation, Op::kNoOperation, Op::kRequestStateResponse}));
  EXPECT_FALSE(seen.doubted);
}

// Requests for a connection are sent twice at once, and without padding, and in all lengths.
TEST(Joined, padded_requests_and_answers_come_apart) {
  const auto padded = [](Op op, unsigned stu) {
    auto header = header_of(op);
    header.bufx = 12;
    header.offset = 0x11;
    header.sync = stu;
    header.b_num = wire::Padding{.known = true, .asked = stu, .stu = stu}.word();
    if (op == Op::kRequestConnection) {
      header.d_port = 0;
      header.b_num = wire::Padding{.known = true, .stu = stu}.word();
    }
    Octets out(wire::padded_length(stu));
    wire::encode(header, out.data());
    return out;
  };
  const auto rc = padded(Op::kRequestConnection, 10), ca = padded(Op::kConnectionAnswer, 10);
  const Octets alone(rc.begin(), rc.begin() + wire::kHeaderSize);
  const auto seen = read_all({datagram(joined({rc, rc, alone})), datagram(joined({ca, ca})),
                              datagram(joined({rc, padded(Op::kRequestConnection, 9)}))});
  EXPECT_EQ(seen.numbers, (std::vector<std::uint64_t>{1, 1, 1, 2, 2, 3, 3}));
  for (const auto& finding : seen.findings)
    EXPECT_NE(finding.rule, Rule::kControlLength) << finding.seen;
}

TEST(Joined, data_comes_apart_at_headers_of_connections_that_were_seen) {
  const auto stu = with_body(short_one(Op::kData), 1'000),
             rest = with_body(short_one(Op::kData), 300);
  const auto other = with_body(short_one(Op::kData, 77), 1'000);
  auto seen = read_all({datagram(joined({stu, stu, stu, rest}), {.tagged = true})});
  EXPECT_EQ(seen.stus, (std::vector<std::size_t>{1'000, 1'000, 1'000, 300}));
  seen = read_all({datagram(joined({stu, other}))});
  EXPECT_EQ(seen.stus, (std::vector<std::size_t>{2'040})) << "nobody knows the other one";
  seen = read_all({datagram(short_one(Op::kEnd, 77)), datagram(joined({stu, other, rest}))});
  EXPECT_EQ(seen.stus, (std::vector<std::size_t>{0, 1'000, 1'000, 300}));
}

TEST(Joined, what_only_looks_like_several_is_one) {
  const auto stu = with_body(short_one(Op::kData), 1'000);
  const auto off = joined({stu, stu, Octets(20)});
  EXPECT_EQ(read_all({datagram(off)}).stus, (std::vector<std::size_t>{2'060}));
  // Who sent it has summed all of it.
  std::vector<std::byte> frame(4'000);
  auto header = header_of(Op::kData);
  frame.resize(wire::emit({kMacB, kMacA, {}, true}, header, joined({stu, stu}), {}, frame));
  const auto summed = datagram(Bytes(frame).subspan(wire::kEthernetSize));
  EXPECT_EQ(read_all({summed}).stus, (std::vector<std::size_t>{2'080}));
  CapturedFrame at_a_link;
  const auto two = datagram(joined({stu, stu}));
  at_a_link.bytes = two;
  at_a_link.wire_length = two.size();
  at_a_link.over_udp = true;
  JoinedDatagrams splits;
  splits.look(at_a_link);
  EXPECT_FALSE(splits.next(at_a_link)) << "stpd's own traces have none";
}

TEST(Joined, where_one_ends_unsurely_check_has_a_note_and_finds_nothing) {
  const auto rsr = short_one(Op::kRequestStateResponse);
  auto wrong = rsr;
  wrong[0] = std::byte{0xff};
  for (const auto& [data, held] : {std::pair{joined({rsr, rsr, wrong}), ~std::size_t{0}},
                                   std::pair{joined({rsr, rsr, rsr}), std::size_t{14 + 28 + 60}}}) {
    const auto seen = read_all({datagram(rsr), datagram(data), datagram(data)}, held);
    EXPECT_TRUE(seen.doubted);
    unsigned notes = 0;
    for (const auto& finding : seen.findings) {
      EXPECT_TRUE(finding.is_note()) << finding.seen;
      notes += finding.seen.starts_with("perhaps joined datagrams") ? 1 : 0;
    }
    EXPECT_EQ(notes, 1U) << "once";
  }
  const auto seen = read_all({datagram(with_body(rsr, 50))});
  ASSERT_EQ(seen.findings.size(), 1U) << "nothing behind it looks like a header";
  EXPECT_EQ(seen.findings[0].rule, Rule::kControlLength);
}

// Bytes that could be the header of any connection are behind a control operation for nothing.
TEST(Joined, junk_behind_an_operation_is_its_fault_and_excuses_no_other) {
  const Octets junk(96, std::byte{0xd0}), more(200, std::byte{0xd0});
  const auto end = short_one(Op::kEnd), z = Octets(40, std::byte{'z'});
  const auto nop = short_one(Op::kNoOperation);
  for (const auto& data : {junk, more, joined({nop, end, z})}) {
    const auto seen = read_all({datagram(data), datagram(data), datagram(data)});
    EXPECT_FALSE(seen.doubted);
    ASSERT_EQ(seen.findings.size(), 3U);
    for (const auto& finding : seen.findings) EXPECT_FALSE(finding.is_note()) << finding.seen;
  }
}

// Each length that is tried costs a pass over all of it.
TEST(Joined, data_that_names_its_connection_everywhere_is_one) {
  const auto other = with_body(short_one(Op::kData), 5'000);
  Octets data = other;
  for (std::size_t at = 100; at + wire::kHeaderSize < 3'300; at += wire::kHeaderSize)
    std::copy_n(other.begin(), wire::kHeaderSize, data.begin() + static_cast<std::ptrdiff_t>(at));
  EXPECT_EQ(read_all({datagram(joined({data, data}))}).stus, (std::vector<std::size_t>{10'040}));
}

class CheckingJoined : public Checking {};

// Nothing tells where the first of them ends, but DATA is no longer than both sides take.
TEST_F(CheckingJoined, data_of_several_that_was_cut_is_told_and_not_judged) {
  over_ip = true;
  connect(1, 0x11);
  auto offer = named(Op::kRequestToSend, 1, 0x11);
  offer.mx = 16;
  offer.b_num = 4'000;
  offer.d_id = 0xffff'ffff;
  offer.s_id = 7;
  say(offer, kMacA, kMacB);
  auto grant = named(Op::kClearToSend, 1, 0x11);
  grant.param = 12;
  grant.mx = 3;
  grant.bufx = 0x100;
  grant.d_id = 7;
  grant.s_id = 9;
  say(grant, kMacB, kMacA);
  ASSERT_TRUE(findings.empty()) << findings[0].seen;
  auto data = named(Op::kData, 1, 0x11);
  data.mx = 3;
  data.bufx = 0x100;
  data.d_id = 9;
  std::vector<std::byte> frame(3'000);
  wire::emit({kMacB, kMacA, {}, false}, data, Bytes(frame).first(1'024), {}, frame);
  for (unsigned i = 0; i < 2; ++i) {
    auto decoded = decoder.decode({++number, now, Bytes(frame).first(80), frame.size()});
    decoded.ends = {Bytes(frame).first<4>(), Bytes(frame).first<4>(), 8181, 8181};
    checker->frame(decoded);
  }
  ASSERT_EQ(findings.size(), 1U) << "once";
  EXPECT_TRUE(findings[0].is_note());
  EXPECT_NE(findings[0].seen.find("perhaps joined"), std::string::npos) << findings[0].seen;
}

}  // namespace
}  // namespace stp::replay::test
