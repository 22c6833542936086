// SPDX-License-Identifier: BSD-3-Clause
// How a trace that somebody has ordered comes to its end.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/service/read_trace.h"
#include "tests/temporary_directory.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::trace {
namespace {

class PcapngEndTest : public testing::Test {
 protected:
  std::unique_ptr<PcapngWriter> create(PcapngWriter::Options options) {
    std::string error;
    service::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    auto writer = PcapngWriter::create(std::move(file), options, error);
    EXPECT_NE(writer, nullptr) << error;
    return writer;
  }
  static void write(PcapngWriter& writer) {
    std::array<std::byte, 60> const frame{};
    writer.frame(1, frame, {}, PcapngWriter::Way::kSent);
  }
  static bool finishes(const PcapngWriter& writer) {
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!writer.finished() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return writer.finished();
  }

  test::TemporaryDirectory directory;
  std::string const path = directory.path() + "/trace.pcapng";
};

TEST_F(PcapngEndTest, FinishingDoesNotWaitAndLosesNothing) {
  auto const writer = create({});
  for (int i = 0; i < 100; ++i) write(*writer);
  writer->finish();
  ASSERT_TRUE(finishes(*writer));
  EXPECT_EQ(test::read_trace(path).size(), 100U);
  EXPECT_EQ(writer->written_bytes(), std::filesystem::file_size(path));
  EXPECT_EQ(writer->error(), 0);
}

TEST_F(PcapngEndTest, TheLastFrameThatWasOrderedIsTheLastAndTheFileIsClosed) {
  auto const writer = create({.interface = "test", .program = "test", .max_frames = 3});
  for (int i = 0; i < 10; ++i) write(*writer);
  ASSERT_TRUE(finishes(*writer));
  write(*writer);
  EXPECT_EQ(writer->frames(), 3U);
  EXPECT_EQ(writer->dropped(), 0U);
  EXPECT_EQ(test::read_trace(path).size(), 3U);
}

TEST_F(PcapngEndTest, WhenItsTimeIsUpItEndsThoughFramesGoOn) {
  auto const writer = create({.interface = "test", .program = "test", .duration = kMillisecond});
  write(*writer);
  while (!writer->finished()) {
    write(*writer);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  auto const frames = writer->frames();
  write(*writer);
  EXPECT_EQ(writer->frames(), frames);
  EXPECT_EQ(test::read_trace(path).size(), frames);
}

TEST_F(PcapngEndTest, AFullDiskIsReportedAndWhatDidNotFitIsCounted) {
  std::string error;
  service::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(PcapngWriter::create(std::move(full), {}, error), nullptr);
  EXPECT_EQ(error, std::strerror(ENOSPC));
}

}  // namespace
}  // namespace stp::trace
