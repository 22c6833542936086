// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/ladder/ladder.h"

#include "tests/replay/frame_file.h"

namespace stp::replay::test {
namespace {

constexpr MacAddr kMacOther{{2, 0, 0, 0, 0, 3}};

class LadderTest : public ::testing::Test {
 protected:
  Decoder decoder;
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;

  // Valid until the next call.
  Decoded said(const wire::Header& h, const MacAddr& from = kMacA, const MacAddr& to = kMacB) {
    bytes.assign(200, std::byte{0});
    bytes.resize(wire::emit({to, from, {}, false}, h, {}, {}, bytes));
    ++number;
    return decoder.decode(
        {number, static_cast<std::int64_t>(number) * 20'000, bytes, bytes.size()});
  }
  static wire::Header request(std::uint16_t port, std::uint32_t key) {
    auto h = header_of(wire::Op::kRequestConnection);
    h.s_port = port;
    h.d_port = 0;
    h.offset = key;
    h.bufx = 12;
    h.sync = 10;
    h.d_id = 3000;
    return h;
  }
  static wire::Header answer(std::uint16_t to, std::uint16_t port) {
    auto h = request(port, 0xb);
    h.op_flags = wire::op_flags(wire::Op::kConnectionAnswer);
    h.d_port = to;
    h.d_id = 0;
    return h;
  }
  static wire::Header between(std::uint16_t from, std::uint16_t to) {
    auto h = header_of(wire::Op::kRequestState);
    h.s_port = from;
    h.d_port = to;
    return h;
  }
  static Finding finding_at(std::uint64_t frame, Rule rule = Rule::kWrongKey) {
    Finding finding;
    finding.frame = frame;
    finding.rule = rule;
    finding.expected = "D_Key 0x1";
    finding.seen = "</script><b>";
    return finding;
  }
};

TEST_F(LadderTest, FramesOfAConnectionAreToldApartFromOthersByPortsAndRequests) {
  Conversations conversations;
  const auto first = conversations.of(said(request(101, 0xa)));
  EXPECT_EQ(conversations.of(said(request(101, 0xa))), first) << "the RC again";
  EXPECT_EQ(conversations.of(said(answer(101, 202), kMacB, kMacA)), first);
  EXPECT_EQ(conversations.of(said(between(101, 202))), first);
  EXPECT_EQ(conversations.of(said(between(202, 101), kMacB, kMacA)), first);
  EXPECT_NE(conversations.of(said(between(202, 101), kMacOther, kMacA)), first)
      << "another station";
  EXPECT_NE(conversations.of(said(between(101, 203))), first) << "another Port";
  EXPECT_EQ(name_of(conversations.all()[first]),
            "02:00:00:00:00:01 Port 101 – 02:00:00:00:00:02 Port 202, UPort 3000");

  const auto second = conversations.of(said(request(101, 0xc)));
  EXPECT_NE(second, first) << "another Key asks for another connection";
  EXPECT_EQ(conversations.of(said(answer(101, 202), kMacB, kMacA)), second);
  EXPECT_EQ(conversations.of(said(between(101, 202))), second) << "the Ports are used anew";
}

TEST_F(LadderTest, FindingsStandAtTheirFrames) {
  Ladder ladder("a.pcapng", {});
  for (int i = 0; i < 4; ++i) ladder.add(said(between(101, 202)), {});
  ladder.add(finding_at(3));
  ladder.add(finding_at(7));
  ASSERT_EQ(ladder.rows().size(), 4U);
  EXPECT_TRUE(ladder.rows()[1].findings.empty());
  EXPECT_EQ(ladder.rows()[2].findings.size(), 1U);
  EXPECT_EQ(ladder.other_findings(), 1U);
}

TEST_F(LadderTest, NoMoreFramesAreKeptThanAreDrawn) {
  Ladder ladder("a.pcapng", {.from = 3, .frames = 2});
  for (int i = 0; i < 6; ++i) ladder.add(said(between(101, 202)), {});
  ASSERT_EQ(ladder.rows().size(), 2U);
  EXPECT_EQ(ladder.rows().front().number, 3U);
  EXPECT_EQ(ladder.rows().front().time, "0.000040000") << "since the capture began";
  EXPECT_EQ(ladder.other_frames(), 4U);
}

// A capture may name as many stations as it has frames.
TEST_F(LadderTest, StationsBeyondTheColumnsShareTheLast) {
  Ladder ladder("a.pcapng", {});
  for (unsigned i = 0; i < 3 * Ladder::kMostStations; ++i)
    ladder.add(said(between(101, 202), MacAddr{{2, 0, 0, 1, 0, static_cast<std::uint8_t>(i)}}), {});
  ASSERT_EQ(ladder.stations().size(), Ladder::kMostStations);
  EXPECT_EQ(ladder.stations().back(), "other stations");
  EXPECT_EQ(ladder.rows().back().from, Ladder::kMostStations - 1);
}

TEST_F(LadderTest, NothingInACaptureOrItsNameEndsAnElement) {
  Ladder ladder("</script></title><b>.pcapng", {});
  ladder.add(said(between(101, 202)), {});
  ladder.add(finding_at(1));
  const auto page = html_of(ladder, "file:///docs");
  const auto begin = page.find("<script id=\"data\"");
  ASSERT_NE(begin, std::string::npos);
  const auto end = page.find("</script>", begin);
  EXPECT_EQ(page.substr(begin + 1, end - begin - 1).find('<'), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003c/title>"), std::string::npos);
  const auto picture = svg_of(ladder, "file:///docs");
  EXPECT_EQ(picture.find("<b>"), std::string::npos);
  EXPECT_NE(picture.find("&lt;/script&gt;&lt;b&gt;"), std::string::npos);
}

TEST_F(LadderTest, RulesLinkToTheirPages) {
  EXPECT_EQ(link_of(text_of(Rule::kWrongKey), "x"), "x/protocol.md#5-virtual-connections");
  EXPECT_EQ(link_of(text_of(Rule::kBlockName), "x"), "x/protocol.md#11-connectionless-endpoints");
  EXPECT_EQ(link_of(text_of(Rule::kPathParts), "x"), "x/protocol.md#13-stp-over-udp");
  EXPECT_EQ(link_of(text_of(Rule::kMidTrace), "x"), "x/conformance.md#the-rules-of-check");
  for (const auto& rule : rules())
    EXPECT_NO_THROW(static_cast<void>(link_of(rule, "x"))) << rule.section;
}

}  // namespace
}  // namespace stp::replay::test
