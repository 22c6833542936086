// SPDX-License-Identifier: BSD-3-Clause
// What a trace lacks, it says itself: frames that found no room, and the ends of frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/temporary_directory.h"
#include "tools/replay/capture.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::trace {
namespace {

class PcapngDropsTest : public testing::Test {
 protected:
  std::unique_ptr<PcapngWriter> create(PcapngWriter::Options options) {
    std::string error;
    auto writer = PcapngWriter::create(path, std::move(options), error);
    EXPECT_NE(writer, nullptr) << error;
    return writer;
  }
  static void write(PcapngWriter& writer, std::size_t size) {
    const std::vector<std::byte> bytes(size, std::byte{7});
    writer.frame(1, Bytes(bytes).first(size / 3), Bytes(bytes).subspan(size / 3),
                 PcapngWriter::Way::kSent);
  }
  std::optional<replay::Capture> read() {
    std::string error;
    auto capture = replay::Capture::open(path, error);
    EXPECT_TRUE(capture) << error;
    return capture;
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.pcapng";
};

TEST_F(PcapngDropsTest, TheFileTellsHowManyFramesItLacksAndWhere) {
  std::uint64_t dropped = 0, frames = 0;
  {
    const auto writer =
        create({.interface = "i", .program = "p", .ring_bytes = std::size_t{1} << 12});
    do {
      for (int i = 0; i < 1'000; ++i) write(*writer, 199);
    } while (writer->dropped() == 0);
    dropped = writer->dropped();
    frames = writer->frames();
  }
  auto capture = read();
  ASSERT_TRUE(capture);
  EXPECT_EQ(capture->dropped(), dropped);
  replay::CapturedFrame frame;
  std::uint64_t before_frames = 0, read_frames = 0;
  for (; capture->next(frame); ++read_frames) before_frames += frame.dropped;
  EXPECT_EQ(capture->error(), "");
  EXPECT_EQ(read_frames, frames);
  EXPECT_LE(before_frames, dropped);
  EXPECT_GE(before_frames + 1'000, dropped);  // the last ones have no frame behind them
}

TEST_F(PcapngDropsTest, FramesAreCutWhereTheSnapLengthSaysAndKeepTheirLength) {
  {
    const auto writer = create({.interface = "i", .program = "p", .snap_length = 80});
    for (const auto size : {79U, 80U, 81U, 300U}) write(*writer, size);
  }
  auto capture = read();
  ASSERT_TRUE(capture);
  EXPECT_EQ(capture->dropped(), 0U);
  replay::CapturedFrame frame;
  for (const auto size : {79U, 80U, 81U, 300U}) {
    ASSERT_TRUE(capture->next(frame)) << capture->error();
    EXPECT_EQ(frame.wire_length, size);
    EXPECT_EQ(frame.bytes.size(), std::min(size, 80U));
    for (const auto byte : frame.bytes) EXPECT_EQ(byte, std::byte{7});
  }
  EXPECT_FALSE(capture->next(frame));
}

TEST_F(PcapngDropsTest, ABufferThatThereIsNoMemoryForIsAnError) {
  std::string error;
  EXPECT_EQ(
      PcapngWriter::create(
          path, {.interface = "i", .program = "p", .ring_bytes = std::size_t{1} << 60}, error),
      nullptr);
  EXPECT_NE(error.find("no memory"), std::string::npos) << error;
}

}  // namespace
}  // namespace stp::trace
