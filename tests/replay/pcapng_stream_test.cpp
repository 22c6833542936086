// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/pcapng_stream.h"

#include "tests/replay/frame_file.h"
#include "tests/replay/pcapng_file.h"
#include "tests/temporary_directory.h"

namespace stp::replay::test {
namespace {

using wire::Op;

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
