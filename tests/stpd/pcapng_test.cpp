// SPDX-License-Identifier: BSD-3-Clause
// A trace is a file that other programs can read, however many frames it has.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/stpd/read_trace.h"
#include "tests/temporary_directory.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::trace {
namespace {

class PcapngTest : public testing::Test {
 protected:
  std::unique_ptr<PcapngWriter> create(PcapngWriter::Options options = {.interface = "iface:veth0",
                                                                        .program = "test"}) {
    std::string error;
    auto writer = PcapngWriter::create(path, std::move(options), error);
    EXPECT_NE(writer, nullptr) << error;
    return writer;
  }
  // Frame `i` is i bytes long, all of value i, in two parts.
  static void write(PcapngWriter& writer, std::size_t i) {
    const std::vector<std::byte> bytes(i, static_cast<std::byte>(i));
    const auto split = i / 3;
    writer.frame(1'000'000'000'123'456'789 + i, Bytes(bytes).first(split),
                 Bytes(bytes).subspan(split),
                 i % 2 != 0 ? PcapngWriter::Way::kSent : PcapngWriter::Way::kReceived);
  }
  std::vector<test::Packet> read() { return test::read_trace(path); }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.pcapng";
};

TEST_F(PcapngTest, AnEmptyTraceIsValid) {
  create();
  EXPECT_TRUE(read().empty());
}

// As --pcap of two stpd, or stpctl trace beside it.
TEST_F(PcapngTest, TwoTracesAreNotWrittenIntoOneFile) {
  std::string error;
  auto first = create();
  write(*first, 100);
  EXPECT_EQ(PcapngWriter::create(path, {}, error), nullptr);
  EXPECT_EQ(error, path + ": another trace is written there at present");
  first.reset();
  EXPECT_EQ(read().size(), 1U);
  EXPECT_NE(PcapngWriter::create(path, {}, error), nullptr) << error;
  const auto one = PcapngWriter::create("/dev/null", {}, error);
  EXPECT_NE(PcapngWriter::create("/dev/null", {}, error), nullptr) << error;
}

TEST_F(PcapngTest, FramesComeBackWithTheirTimes) {
  constexpr std::size_t kFrames = 300;
  {
    const auto writer = create();
    for (std::size_t i = 0; i < kFrames; ++i) write(*writer, i);
    EXPECT_EQ(writer->frames(), kFrames);
    EXPECT_EQ(writer->dropped(), 0U);
  }
  const auto packets = read();
  ASSERT_EQ(packets.size(), kFrames);
  for (std::size_t i = 0; i < kFrames; ++i) {
    EXPECT_EQ(packets[i].time, 1'000'000'000'123'456'789 + i);
    EXPECT_EQ(packets[i].bytes, std::vector<std::byte>(i, static_cast<std::byte>(i)));
  }
}

TEST_F(PcapngTest, ItEndsAfterTheFramesAskedFor) {
  {
    const auto writer = create({.interface = "i", .program = "p", .max_frames = 7});
    for (std::size_t i = 0; i < 20; ++i) write(*writer, 60 + i);
    EXPECT_EQ(writer->dropped(), 0U);
  }
  EXPECT_EQ(read().size(), 7U);
}

TEST_F(PcapngTest, TheFileIsValidWhileItGrows) {
  const auto writer = create();
  for (std::size_t i = 0; i < 10; ++i) write(*writer, 100);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (read().size() != 10 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(read().size(), 10U);
}

TEST_F(PcapngTest, WhatFindsNoRoomIsCountedAndTheRestIsWhole) {
  // A ring of a few frames, written around many times. Far more come at once than it holds.
  constexpr std::size_t kFrames = 5'000, kSize = 199;
  std::uint64_t written = 0;
  {
    const auto writer =
        create({.interface = "i", .program = "p", .ring_bytes = std::size_t{1} << 12});
    for (std::size_t i = 0; i < kFrames; ++i) {
      write(*writer, kSize);
      if (i % 128 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    written = writer->frames();
    EXPECT_EQ(written + writer->dropped(), kFrames);
    EXPECT_GT(writer->dropped(), 0U);
  }
  const auto packets = read();
  EXPECT_EQ(packets.size(), written);
  for (const auto& packet : packets)
    ASSERT_EQ(packet.bytes, std::vector<std::byte>(kSize, static_cast<std::byte>(kSize)));
}

TEST_F(PcapngTest, AFileThatCannotBeMadeIsNamed) {
  std::string error;
  EXPECT_EQ(PcapngWriter::create("/nowhere/trace", {}, error), nullptr);
  EXPECT_NE(error.find("/nowhere/trace"), std::string::npos);
}

}  // namespace
}  // namespace stp::trace
