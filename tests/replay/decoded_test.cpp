// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/capture.h"

#include "tests/replay/datagram.h"
#include "tests/replay/frame_file.h"
#include "tools/replay/check/checker.h"
#include "tools/replay/text.h"

namespace stp::replay::test {
namespace {

using wire::Op;
Octets data_of(std::size_t stu) {
  Octets out(wire::kHeaderSize + stu);
  auto header = header_of(Op::kData);
  wire::encode(header, out.data());
  return out;
}

Decoded decode(Decoder& decoder, const Octets& frame, std::size_t held = 0) {
  CapturedFrame captured;
  captured.bytes = Bytes(frame).first(held == 0 ? frame.size() : held);
  captured.wire_length = frame.size();
  return decoder.decode(captured);
}

// protocol: 13.1, 13.2, 13.3
TEST(Datagrams, are_decoded_as_frames_of_the_stations_they_name) {
  Decoder decoder;
  const auto got = decode(decoder, datagram(data_of(3)));
  ASSERT_TRUE(got.well_formed()) << got.error();
  EXPECT_EQ(got.frame.src.to_u64(), 0x0204'0a00'0001U);
  EXPECT_EQ(got.frame.dst.to_u64(), 0x0204'0a00'0002U);
  EXPECT_EQ(got.frame.stu.size(), 3U) << "the datagram states the length, not the padding";
}

TEST(Datagrams, over_ipv6_and_with_a_tag_have_names_that_stay) {
  Decoder decoder;
  const auto first = decode(decoder, datagram(data_of(100), {.ipv6 = true}));
  ASSERT_TRUE(first.well_formed()) << first.error();
  EXPECT_EQ(first.frame.stu.size(), 100U);
  const auto source = first.frame.src, destination = first.frame.dst;
  EXPECT_NE(source, destination);
  EXPECT_FALSE(source.is_group());
  const auto again = decode(decoder, datagram(data_of(1), {.ipv6 = true, .tagged = true}));
  EXPECT_EQ(again.frame.src, source);
  const auto other_port = decode(decoder, datagram(data_of(1), {.ipv6 = true, .to = 9000}));
  EXPECT_NE(other_port.frame.dst, destination);
}

// protocol: 13.15
TEST(Datagrams, of_ip_itself_are_told_by_their_protocol) {
  Decoder decoder;
  for (const bool ipv6 : {false, true}) {
    const auto padded = datagram(data_of(3), {.ipv6 = ipv6, .to = 0});
    const auto got = decode(decoder, padded);
    ASSERT_TRUE(got.well_formed()) << got.error();
    EXPECT_EQ(got.frame.stu.size(), 3U) << "the packet states the length, not the padding";
    EXPECT_EQ(got.ends->from, 0);
    if (!ipv6) {
      EXPECT_EQ(got.frame.dst.to_u64(), 0x0204'0a00'0002U);
    }
    EXPECT_EQ(end_text(got.ends->destination, 0), ipv6 ? "[2001:db8::2]" : "10.0.0.2");
    const auto whole = datagram(data_of(1000), {.ipv6 = ipv6, .to = 0});
    const auto cut = decode(decoder, whole, 100);
    EXPECT_TRUE(cut.cut);
    EXPECT_EQ(cut.frame.stu.size(), 1000U);
  }
}

// protocol: 13.4
TEST(Datagrams, are_told_by_address_and_udp_port_and_so_are_their_stations) {
  Decoder decoder;
  struct Case {
    Wrapping how;
    const char *from, *to, *encapsulation;
  };
  for (const auto& [how, from, to, encapsulation] :
       {Case{{}, "10.0.0.1/8181", "10.0.0.2/8181", "UDP"},
        Case{{.to = 9000}, "10.0.0.1/8181", "10.0.0.2/9000", "UDP"},
        Case{{.ipv6 = true, .to = 9000}, "[2001:db8::1]/8181", "[2001:db8::2]/9000", "UDP"},
        Case{{.ipv6 = true, .to = 0}, "[2001:db8::1]", "[2001:db8::2]", "IP"}}) {
    const auto bytes = datagram(data_of(3), how);
    const auto got = decode(decoder, bytes);
    const auto line = line_of(got, 0), json = json_of(got);
    EXPECT_NE(line.find(std::string(from) + " > " + to + " DATA"), std::string::npos) << line;
    EXPECT_NE(json.find(R"("src":")" + std::string(from) + R"(","dst":")" + to +
                        R"(","encapsulation":")" + encapsulation + '"'),
              std::string::npos)
        << json;
    EXPECT_EQ(parse_station(from), got.frame.src);
    EXPECT_EQ(parse_station(to), got.frame.dst);
  }
  EXPECT_EQ(parse_station("02:00:00:00:00:01"), (MacAddr{{2, 0, 0, 0, 0, 1}}));
  for (const auto* const text : {"", "10.0.0", "10.0.0.1/0", "10.0.0.1/70000", "10.0.0.1/8181x",
                                 "2001:db8::1/8181", "[2001:db8::1", "[10.0.0.1]/8181", "02:00:00"})
    EXPECT_FALSE(parse_station(text)) << text;
}

TEST(Datagrams, that_are_cut_have_the_lengths_on_the_wire) {
  Decoder decoder;
  const auto whole = datagram(data_of(1000));
  const auto got = decode(decoder, whole, 14 + 28 + 40 + 10);
  EXPECT_TRUE(got.cut);
  EXPECT_EQ(got.frame.stu.size(), 1000U);
  EXPECT_EQ(got.payload_held, 10U);
}

TEST(Datagrams, of_others_and_fragments_are_not_ours) {
  Decoder decoder;
  auto other = datagram(data_of(1), {.to = 53});
  other[14 + 20 + 1] = std::byte{1};  // nor from our port
  EXPECT_FALSE(decode(decoder, other).is_stp());
  CapturedFrame at_a_link;
  at_a_link.bytes = other;
  at_a_link.wire_length = other.size();
  at_a_link.over_udp = true;
  EXPECT_TRUE(decoder.decode(at_a_link).is_stp()) << "a link over UDP carries nothing else";
  at_a_link.over_udp = false;
  const std::uint16_t ports[] = {9001, 53};
  at_a_link.udp_ports = ports;
  EXPECT_TRUE(decoder.decode(at_a_link).is_stp()) << "the user has named the port";
  EXPECT_FALSE(decode(decoder, datagram(data_of(1), {.flags = 0x2000})).is_stp());
  EXPECT_FALSE(decode(decoder, datagram(data_of(1), {.flags = 0x0001})).is_stp());
  auto tcp = datagram(data_of(1));
  tcp[14 + 9] = std::byte{6};
  EXPECT_FALSE(decode(decoder, tcp).is_stp());
}

// Others see both directions of UDP on the host itself, and know no MAC addresses.
TEST(Datagrams, of_one_direction_only_are_told_with_their_addresses) {
  for (const bool ipv6 : {false, true}) {
    std::string seen;
    Checker checker([&](const Finding& finding) {
      if (finding.rule == Rule::kOneSided) seen = finding.seen;
    });
    Decoder decoder;
    Octets data(wire::kHeaderSize);
    wire::encode(header_of(Op::kRequestAnswer), data.data());
    const auto whole = datagram(data, {.ipv6 = ipv6, .to = 9000});
    auto frame = decode(decoder, whole);
    frame.number = 1;
    checker.frame(frame);
    checker.finish();
    const auto ends = ipv6 ? "from [2001:db8::1]/8181 to [2001:db8::2]/9000"
                           : "from 10.0.0.1/8181 to 10.0.0.2/9000";
    EXPECT_NE(seen.find(ends), std::string::npos) << seen;
    EXPECT_EQ(seen.find("what it receives"), std::string::npos) << seen;
  }
}

TEST(Datagrams, of_any_length_are_read_within_their_bounds) {
  Decoder decoder;
  for (const bool ipv6 : {false, true}) {
    const auto whole = datagram(data_of(20), {.ipv6 = ipv6, .tagged = true});
    for (std::size_t length = 1; length <= whole.size(); ++length) {
      // Exactly as long, so that a sanitizer sees what is read beyond.
      const Octets cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      CapturedFrame captured;
      captured.bytes = cut;
      captured.wire_length = length;
      decoder.decode(captured);
      captured.wire_length = whole.size();
      decoder.decode(captured);
    }
  }
}

}  // namespace
}  // namespace stp::replay::test
