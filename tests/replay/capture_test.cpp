// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <limits>

#include "stp/wire/big_endian.h"
#include "stp/wire/ethernet.h"
#include "tests/replay/datagram.h"
#include "tests/replay/frame_file.h"
#include "tests/replay/pcapng_file.h"
#include "tests/temporary_directory.h"
#include "tools/replay/capture.h"
#include "tools/replay/text.h"

namespace stp::replay::test {
namespace {

using wire::Op;

TEST(ReadingCaptures, a_file_that_is_no_capture_is_named_with_the_cause) {
  std::string error;
  EXPECT_FALSE(Capture::open("/nowhere/at.all", error));
  EXPECT_EQ(error, "/nowhere/at.all: No such file or directory");
  EXPECT_FALSE(Capture::open("/dev/null", error));
  EXPECT_NE(error.find("not a capture that can be read"), std::string::npos) << error;
}

TEST(ReadingCaptures, frames_of_another_link_type_are_refused_with_the_remedy) {
  FrameFile file(105);  // of a radio
  std::string error;
  EXPECT_FALSE(file.open(error));
  EXPECT_NE(error.find("IEEE802_11"), std::string::npos) << error;
  EXPECT_NE(error.find("on an interface with one of these"), std::string::npos) << error;
}

// What tcpdump writes of tunnels, and with -i any, of two versions.
TEST(ReadingCaptures, packets_without_an_ethernet_header_are_read) {
  const auto of_link = [](std::size_t size, std::size_t type_at, unsigned type) {
    Octets head(size);
    if (size != 0) wire::store16(head.data() + type_at, static_cast<std::uint16_t>(type));
    return head;
  };
  Octets nop(wire::kHeaderSize);
  wire::encode(header_of(Op::kNoOperation), nop.data());
  for (const bool ipv6 : {false, true}) {
    auto packet = datagram(nop, {.ipv6 = ipv6});
    packet.erase(packet.begin(), packet.begin() + wire::kEthernetSize);
    const unsigned type = ipv6 ? 0x86dd : 0x0800;
    for (const auto& [link_type, head] :
         {std::pair{101U, Octets{}}, {113U, of_link(16, 14, type)}, {276U, of_link(20, 0, type)}}) {
      FrameFile file(link_type);
      auto frame = head;
      frame.insert(frame.end(), packet.begin(), packet.end());
      file.add(1, of_link(head.size(), head.size() == 16 ? 14 : 0, 0x0806));  // ARP, or nothing
      file.add(2, frame);
      file.add(3, Bytes(frame).first(frame.size() - 20), static_cast<std::uint32_t>(frame.size()));
      std::string error;
      auto capture = file.open(error);
      ASSERT_TRUE(capture) << error;
      Decoder decoder;
      CapturedFrame captured;
      std::vector<bool> are_stp;
      while (capture->next(captured)) {
        const auto decoded = decoder.decode(captured);
        are_stp.push_back(decoded.is_stp());
        if (captured.number == 2) {
          EXPECT_TRUE(decoded.well_formed() && decoded.ends) << link_type;
        }
        if (captured.number == 3) {
          EXPECT_TRUE(decoded.cut) << link_type;
        }
      }
      EXPECT_EQ(are_stp, (std::vector{false, true, true})) << link_type << capture->error();
    }
  }
}

TEST(ReadingCaptures, frames_of_stp_without_their_addresses_are_refused_with_the_remedy) {
  FrameFile file(113);
  Octets frame(16 + wire::kHeaderSize);
  wire::store16(frame.data() + 14, wire::kEtherType);
  wire::encode(header_of(Op::kNoOperation), frame.data() + 16);
  file.add(1, frame);
  std::string error;
  auto capture = file.open(error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame captured;
  EXPECT_FALSE(capture->next(captured));
  EXPECT_NE(capture->error().find("one Ethernet interface"), std::string::npos) << capture->error();
}

TEST(ReadingCaptures, what_stands_in_front_of_the_damage_is_read_and_the_damage_named) {
  FrameFile file;
  file.add(1, frame_of(header_of(Op::kNoOperation)));
  file.garbage("torn");
  std::string error;
  auto capture = file.open(error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame frame;
  EXPECT_TRUE(capture->next(frame));
  EXPECT_FALSE(capture->next(frame));
  EXPECT_NE(capture->error().find("after frame 1"), std::string::npos) << capture->error();
}

TEST(ReadingCaptures, times_beyond_the_end_of_the_clock_leave_room_for_sums) {
  auto file = far_away(std::uint64_t{1} << 40, frame_of(header_of(Op::kNoOperation)));
  std::string error;
  auto capture = Capture::read(fmemopen(file.data(), file.size(), "rb"), "test", error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame frame;
  ASSERT_TRUE(capture->next(frame)) << capture->error();
  EXPECT_EQ(frame.epoch, std::int64_t{1} << 40);
  EXPECT_EQ(frame.time, 0);
  Decoder decoder;
  const auto json = json_of(decoder.decode(frame));
  EXPECT_NE(json.find(R"("time":1099511627776.000000000,)"), std::string::npos) << json;
}

TEST(ReadingCaptures, times_of_every_decade_differ_and_are_printed_as_they_are) {
  for (const std::uint64_t year : {2'000'000'000ULL, 2'300'000'000ULL, 2'400'000'000ULL,
                                   4'200'000'000ULL, 9'000'000'000ULL, 20'000'000'000ULL}) {
    PcapngFile file;
    file.interface(0);
    file.packet(0, year * 1'000'000, frame_of(header_of(Op::kNoOperation)));
    file.packet(0, year * 1'000'000 + 1, frame_of(header_of(Op::kNoOperation)));
    std::string error;
    auto capture = file.open(error);
    ASSERT_TRUE(capture) << error;
    CapturedFrame first, second;
    ASSERT_TRUE(capture->next(first) && capture->next(second));
    EXPECT_EQ(second.time - first.time, 1'000) << year;
    Decoder decoder;
    const auto json = json_of(decoder.decode(second));
    EXPECT_NE(json.find("\"time\":" + std::to_string(year) + ".000001000,"), std::string::npos)
        << json;
  }
}

TEST(ReadingCaptures, a_pcap_of_after_2038_is_not_of_before_1970) {
  FrameFile file;
  file.add(0x9000'0000, frame_of(header_of(Op::kNoOperation)));
  std::string error;
  auto capture = file.open(error);
  CapturedFrame frame;
  ASSERT_TRUE(capture && capture->next(frame));
  EXPECT_EQ(seconds(frame.time, frame.epoch), "2415919104.000000000");
}

TEST(ReadingCaptures, the_check_sequence_that_a_pcap_tells_of_is_no_part_of_a_frame) {
  auto with_fcs = frame_of(header_of(Op::kNoOperation));
  const auto length = with_fcs.size();
  with_fcs.resize(length + 4);
  FrameFile file(1 | 0x2400'0000);
  file.add(1, with_fcs);
  file.add(2, Bytes(with_fcs).first(50), static_cast<std::uint32_t>(with_fcs.size()));
  std::string error;
  auto capture = file.open(error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame frame;
  ASSERT_TRUE(capture->next(frame));
  EXPECT_EQ(frame.wire_length, length);
  EXPECT_EQ(frame.bytes.size(), length);
  ASSERT_TRUE(capture->next(frame));
  EXPECT_EQ(frame.wire_length, length);
  EXPECT_EQ(frame.bytes.size(), 50U);
}

// The CRC as Ethernet has it, bit by bit.
std::vector<std::byte> with_crc(Bytes frame) {
  std::uint32_t crc = 0xffff'ffff;
  for (const auto byte : frame) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb8'8320 : 0);
  }
  std::vector<std::byte> whole(frame.begin(), frame.end());
  for (unsigned i = 0; i < 4; ++i) whole.push_back(static_cast<std::byte>(~crc >> 8 * i & 0xff));
  return whole;
}

TEST(ReadingCaptures, a_check_sequence_that_the_file_does_not_tell_of_is_no_part_of_a_frame) {
  const auto plain = frame_of(header_of(Op::kNoOperation));
  const auto whole = with_crc(plain);
  FrameFile file;
  file.add(1, whole);
  file.add(2, Bytes(whole).first(50), static_cast<std::uint32_t>(whole.size()));
  file.add(3, plain);  // sent by the capturing host: before the NIC appends one
  std::string error;
  auto capture = file.open(error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame frame;
  for (const std::size_t captured : {plain.size(), std::size_t{50}, plain.size()}) {
    ASSERT_TRUE(capture->next(frame));
    EXPECT_EQ(frame.wire_length, plain.size());
    EXPECT_EQ(frame.bytes.size(), captured);
  }
  EXPECT_TRUE(capture->found_check_sequences());
}

// The frames of the capturing host have none, however many of them come first.
TEST(ReadingCaptures, check_sequences_are_found_for_each_sender) {
  constexpr std::uint32_t kPlain = 300;
  const auto plain = frame_of(header_of(Op::kNoOperation));
  auto answer = plain;
  std::copy_n(kMacB.octets.begin(), 6, reinterpret_cast<std::uint8_t*>(answer.data()) + 6);
  const auto whole = with_crc(answer);
  FrameFile file;
  for (std::uint32_t i = 0; i < kPlain; ++i) file.add(i, plain);
  file.add(kPlain, whole);
  file.add(kPlain + 1, Bytes(whole).first(50), static_cast<std::uint32_t>(whole.size()));
  file.add(kPlain + 2, Bytes(plain).first(50), static_cast<std::uint32_t>(plain.size()));
  std::string error;
  auto capture = file.open(error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame frame;
  for (std::uint32_t i = 0; i < kPlain + 3; ++i) {
    ASSERT_TRUE(capture->next(frame));
    EXPECT_EQ(frame.wire_length, plain.size()) << i;
  }
  EXPECT_TRUE(capture->found_check_sequences());
}

TEST(ReadingCaptures, four_bytes_that_are_no_check_sequence_stay) {
  auto longer = frame_of(header_of(Op::kNoOperation));
  longer.resize(longer.size() + 4);
  FrameFile file;
  file.add(1, longer);
  std::string error;
  auto capture = file.open(error);
  ASSERT_TRUE(capture) << error;
  CapturedFrame frame;
  ASSERT_TRUE(capture->next(frame));
  EXPECT_EQ(frame.bytes.size(), longer.size());
  EXPECT_FALSE(capture->found_check_sequences());
}

TEST(ReadingCaptures, a_compressed_file_is_refused_with_the_program_that_unpacks_it) {
  std::string packed("\x1f\x8b\x08 and so on, longer than the header of a capture is");
  std::string error;
  EXPECT_FALSE(Capture::read(fmemopen(packed.data(), packed.size(), "rb"), "x.gz", error));
  EXPECT_NE(error.find("zcat <x.gz | stp-replay check -"), std::string::npos) << error;
  EXPECT_FALSE(Capture::read(fmemopen(packed.data(), packed.size(), "rb"), "-", error));
  EXPECT_NE(error.find("zcat | stp-replay check -"), std::string::npos) << error;
}

TEST(Decoding, lengths_of_a_frame_that_the_capture_cut_are_those_of_the_wire) {
  const std::vector<std::byte> stu(1000);
  const auto whole = frame_of(header_of(Op::kData, wire::flag::kLast), stu);
  Decoder decoder;
  CapturedFrame captured{1, 0, Bytes(whole).first(80), whole.size()};
  const auto decoded = decoder.decode(captured);
  EXPECT_TRUE(decoded.well_formed());
  EXPECT_EQ(decoded.frame.stu.size(), 1000U);
  EXPECT_TRUE(decoded.cut);
}

TEST(Decoding, a_frame_cut_inside_its_header_is_cut_and_not_wrong) {
  const auto whole = frame_of(header_of(Op::kNoOperation));
  Decoder decoder;
  for (std::size_t held = 0; held < 54; ++held) {
    const auto decoded = decoder.decode({1, 0, Bytes(whole).first(held), whole.size()});
    EXPECT_TRUE(decoded.cut_short) << held;
    EXPECT_STREQ(decoded.error(), "cut");
  }
}

TEST(Decoding, of_two_tags_the_outer_one_is_taken_off_and_shown) {
  auto bytes = frame_of(header_of(Op::kNoOperation));
  const std::array<std::byte, 8> tags{std::byte{0x88}, std::byte{0xa8}, std::byte{1}, std::byte{44},
                                      std::byte{0x81}, std::byte{0},    std::byte{0}, std::byte{7}};
  bytes.insert(bytes.begin() + 12, tags.begin(), tags.end());
  Decoder decoder;
  const auto decoded = decoder.decode({1, 0, bytes, bytes.size()});
  EXPECT_TRUE(decoded.well_formed());
  EXPECT_EQ(decoded.wire_length, bytes.size());
  EXPECT_NE(line_of(decoded, 0).find(" outer-vlan=300 vlan=7 NOP"), std::string::npos);
  const auto json = json_of(decoded);
  EXPECT_NE(json.find(R"("outer_vlan":300,"vlan":7)"), std::string::npos) << json;
  for (std::size_t held = 22; held < bytes.size(); ++held) {
    const auto cut = decoder.decode({1, 0, Bytes(bytes).first(held), bytes.size()});
    EXPECT_EQ(cut.cut_short, held < 62) << held;
  }
}

TEST(Decoding, a_claimed_length_beyond_any_frame_costs_no_memory) {
  const auto whole = frame_of(header_of(Op::kData, wire::flag::kLast));
  Decoder decoder;
  const auto decoded = decoder.decode({1, 0, whole, 0xffffffff});
  EXPECT_LE(decoded.frame.stu.size(), 70'000U);
}

TEST(Decoding, a_cut_checksum_is_neither_good_nor_bad) {
  auto h = header_of(Op::kData, wire::flag::kLast);
  h.cksum = 1;
  std::vector<std::byte> bytes = frame_of(h, std::vector<std::byte>(100));
  bytes[14 + wire::at::kCksum] = std::byte{1};
  Decoder decoder;
  EXPECT_EQ(decoder.decode({1, 0, bytes, bytes.size()}).cksum, Cksum::kBad);
  EXPECT_EQ(decoder.decode({1, 0, Bytes(bytes).first(80), bytes.size()}).cksum, Cksum::kUnknown);
}

TEST(Decoding, an_object_has_the_headers_names_and_the_operations_own) {
  auto h = header_of(Op::kRequestToSend);
  h.param = 2;
  h.mx = 16;
  h.set_t_len(5'000'000'000);
  h.d_id = wire::kNoId;
  h.s_id = 7;
  const auto frame = frame_of(h);
  Decoder decoder;
  EXPECT_EQ(json_of(decoder.decode({3, 1'000'000'001, frame, frame.size()})),
            R"({"frame":3,"time":1.000000001,"src":"02:00:00:00:00:01","dst":"02:00:00:00:00:02",)"
            R"("encapsulation":"Ethernet II","op":"RTS","flags":[],"Param":2,"D_Port":202,)"
            R"("S_Port":101,"D_Key":0,"Cksum":0,"Mx":16,"Bufx":0,"Offset":0,"Sync":1,)"
            R"("B_num":705032704,"D_id":4294967295,"S_id":7,"CTS_req":2,"Max_Block":16,)"
            R"("T_len":5000000000,"RTR_I_id":4294967295,"I_id":7,"payload":0,"checksum":"none",)"
            R"("length":60})");
}

TEST(Decoding, a_frame_that_is_not_well_formed_says_why) {
  auto h = header_of(Op::kNoOperation);
  h.s_port = 0;
  const auto frame = frame_of(h);
  Decoder decoder;
  const auto json = json_of(decoder.decode({1, 0, frame, frame.size()}));
  EXPECT_NE(json.find(R"("error":"zero_port")"), std::string::npos) << json;
}

TEST(Decoding, times_before_1970_and_at_the_ends_of_the_clock_are_printed) {
  EXPECT_EQ(seconds(-1), "-0.000000001");
  EXPECT_EQ(seconds(std::numeric_limits<std::int64_t>::min()), "-9223372036.854775808");
}

const auto kFrame = frame_of(header_of(Op::kNoOperation));

std::vector<CapturedFrame> all_of(Capture& capture) {
  std::vector<CapturedFrame> frames;
  CapturedFrame frame;
  while (capture.next(frame)) frames.push_back(frame);
  EXPECT_EQ(capture.error(), "");
  return frames;
}

class Pcapng : public ::testing::TestWithParam<bool> {
 protected:
  std::vector<CapturedFrame> read() {
    std::string error;
    capture = file.open(error);
    EXPECT_TRUE(capture) << error;
    return capture ? all_of(*capture) : std::vector<CapturedFrame>();
  }
  PcapngFile file{GetParam()};
  std::optional<Capture> capture;
};

TEST_P(Pcapng, interfaces_may_have_different_snap_lengths) {
  file.interface(96);
  file.interface(0);
  file.interface(65'535);
  for (std::uint32_t i = 0; i < 3; ++i) file.packet(i, 1'000'000 * i, kFrame);
  const auto frames = read();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[2].time, 2 * std::int64_t{kSecond});
  EXPECT_EQ(frames[2].wire_length, kFrame.size());
}

// stpd names the link: its datagrams are ours, whatever their UDP ports.
TEST_P(Pcapng, interfaces_that_are_links_over_udp_are_told) {
  file.interface(0, file.option(2, "udp:10.9.1.2,port=9001"));
  file.interface(0, file.option(2, "udp0"));
  file.interface(0, file.option(2, "udp"));
  for (std::uint32_t i = 0; i < 3; ++i) file.packet(i, i, kFrame);
  const auto frames = read();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_TRUE(frames[0].over_udp);
  EXPECT_FALSE(frames[1].over_udp);
  EXPECT_FALSE(frames[2].over_udp);
}

TEST_P(Pcapng, a_frame_check_sequence_is_no_part_of_the_frame) {
  auto with_fcs = kFrame;
  with_fcs.resize(kFrame.size() + 4, std::byte{0xee});
  file.interface(0, file.option(13, std::string(1, '\4')));   // as the format says now
  file.interface(0, file.option(13, std::string(1, '\40')));  // and as it said once
  file.interface(0);
  file.packet(0, 1, with_fcs);
  file.packet(1, 2, with_fcs);
  file.packet(2, 3, with_fcs, file.option(2, file.number(std::uint32_t{4 << 5})));
  file.packet(2, 4, kFrame);
  for (const auto& frame : read()) {
    EXPECT_EQ(frame.wire_length, kFrame.size()) << frame.number;
    EXPECT_EQ(frame.bytes.size(), kFrame.size());
  }
}

TEST_P(Pcapng, what_the_capturing_program_dropped_is_summed_over_interfaces_and_not_counted_twice) {
  file.interface(0);
  file.interface(0);
  file.packet(0, 1, kFrame, file.option(4, file.number(std::uint64_t{5})));
  file.packet(0, 2, kFrame, file.option(4, file.number(std::uint64_t{2})));
  file.statistics(0, file.option(5, file.number(std::uint64_t{7})));
  file.statistics(0, file.option(5, file.number(std::uint64_t{7})));
  file.statistics(1, file.option(7, file.number(std::uint64_t{1})) +
                         file.option(5, file.number(std::uint64_t{2})));
  file.statistics(9, file.option(5, file.number(std::uint64_t{100})));  // there is none
  const auto frames = read();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].dropped, 5U);
  EXPECT_EQ(capture->dropped(), 10U);
}

INSTANTIATE_TEST_SUITE_P(ByteOrders, Pcapng, ::testing::Bool());

TEST(PcapngFiles, the_drops_of_a_regular_file_are_known_before_its_first_frame) {
  PcapngFile file;
  file.interface(0);
  file.packet(0, 1, kFrame);
  file.statistics(0, file.option(5, file.number(std::uint64_t{3})));
  const stp::test::TemporaryDirectory directory;
  const auto path = directory.path() + "/dropped.pcapng";
  auto* const out = std::fopen(path.c_str(), "wb");
  std::fwrite(file.bytes().data(), 1, file.bytes().size(), out);
  std::fclose(out);
  std::string error;
  auto capture = Capture::open(path, error);
  ASSERT_TRUE(capture) << error;
  EXPECT_EQ(capture->dropped(), 3U);
  EXPECT_EQ(all_of(*capture).size(), 1U);
}

// Whatever a file claims, libpcap gets its bytes and says what is wrong.
TEST(PcapngFiles, torn_ones_are_read_as_far_as_they_go) {
  PcapngFile file;
  file.interface(0, file.option(13, std::string(1, '\4')));
  file.packet(0, 1, kFrame, file.option(4, file.number(std::uint64_t{5})));
  file.statistics(0, file.option(5, file.number(std::uint64_t{3})));
  for (std::size_t cut = 1; cut < file.bytes().size(); ++cut) {
    for (const auto damage : {'\0', '\xff'}) {
      auto torn = file.bytes();
      torn[cut] = damage;
      if (damage == 0) torn.resize(cut);
      std::string error;
      auto capture = Capture::read(fmemopen(torn.data(), torn.size(), "rb"), "test", error);
      if (!capture) continue;
      CapturedFrame frame;
      while (capture->next(frame)) EXPECT_LE(frame.bytes.size(), torn.size());
    }
  }
}

}  // namespace
}  // namespace stp::replay::test
