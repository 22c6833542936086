// SPDX-License-Identifier: BSD-3-Clause
// How a trace that somebody has ordered comes to its end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/stpd/read_trace.h"
#include "tests/temporary_directory.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::trace {
namespace {

class PcapngEndTest : public testing::Test {
 protected:
  std::unique_ptr<PcapngWriter> create(PcapngWriter::Options options) {
    os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return PcapngWriter::create(std::move(file), options);
  }
  static void write(PcapngWriter& writer) {
    const std::array<std::byte, 60> frame{};
    writer.frame(1, frame, {}, PcapngWriter::Way::kSent);
  }
  static bool finishes(const PcapngWriter& writer) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!writer.finished() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return writer.finished();
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.pcapng";
};

TEST_F(PcapngEndTest, FinishingDoesNotWaitAndLosesNothing) {
  const auto writer = create({});
  for (int i = 0; i < 100; ++i) write(*writer);
  writer->finish();
  ASSERT_TRUE(finishes(*writer));
  EXPECT_EQ(test::read_trace(path).size(), 100U);
  EXPECT_EQ(writer->written_bytes(), std::filesystem::file_size(path));
  EXPECT_EQ(writer->error(), 0);
}

TEST_F(PcapngEndTest, TheLastFrameThatWasOrderedIsTheLastAndTheFileIsClosed) {
  const auto writer = create({.interface = "test", .program = "test", .max_frames = 3});
  for (int i = 0; i < 10; ++i) write(*writer);
  ASSERT_TRUE(finishes(*writer));
  write(*writer);
  EXPECT_EQ(writer->frames(), 3U);
  EXPECT_EQ(writer->dropped(), 0U);
  EXPECT_EQ(test::read_trace(path).size(), 3U);
}

TEST_F(PcapngEndTest, WhenItsTimeIsUpItEndsThoughFramesGoOn) {
  const auto writer = create({.interface = "test", .program = "test", .duration = kMillisecond});
  write(*writer);
  while (!writer->finished()) {
    write(*writer);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto frames = writer->frames();
  write(*writer);
  EXPECT_EQ(writer->frames(), frames);
  EXPECT_EQ(test::read_trace(path).size(), frames);
}

TEST_F(PcapngEndTest, AFullDiskIsReportedAndWhatDidNotFitIsCounted) {
  os::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const auto writer = PcapngWriter::create(std::move(full), {});
  ASSERT_TRUE(finishes(*writer));
  EXPECT_EQ(writer->error(), -ENOSPC);
  write(*writer);
  EXPECT_EQ(writer->dropped(), 1U);
  std::string error;
  EXPECT_EQ(PcapngWriter::create("/dev/full", {}, error), nullptr);
  EXPECT_EQ(error, "/dev/full: " + std::string(std::strerror(ENOSPC)));
}

TEST_F(PcapngEndTest, OnAFullDiskWhatComesAfterTheLastFrameThatWasOrderedIsNotLacking) {
  constexpr std::uint64_t kMost = 3;
  os::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const auto writer = PcapngWriter::create(
      std::move(full), {.interface = "test", .program = "test", .max_frames = kMost});
  for (std::uint64_t i = 0; i < kMost; ++i) write(*writer);
  ASSERT_TRUE(finishes(*writer));
  for (int i = 0; i < 10; ++i) write(*writer);
  EXPECT_EQ(writer->frames(), 0U);
  EXPECT_EQ(writer->dropped(), kMost);
}

// What the file cannot take is cut off behind the last whole frame, and the counts are those of the
// file. The limit of file sizes stands for a full disk.
TEST_F(PcapngEndTest, AFileThatTakesNoMoreHasAsManyFramesAsItsCountSays) {
  constexpr std::uint64_t kFrames = 100;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit few{.rlim_cur = 5'000, .rlim_max = before.rlim_max};
  const auto writer = create({});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  for (std::uint64_t i = 0; i < kFrames; ++i) write(*writer);
  writer->finish();
  EXPECT_TRUE(finishes(*writer));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(writer->error(), -EFBIG);
  EXPECT_GT(writer->frames(), 30U);
  EXPECT_EQ(writer->frames(), test::read_trace(path).size());
  EXPECT_EQ(writer->frames() + writer->dropped(), kFrames);
  EXPECT_EQ(writer->written_bytes(), std::filesystem::file_size(path));
  write(*writer);
  EXPECT_EQ(writer->frames() + writer->dropped(), kFrames + 1);
}

// Nobody reads the pipe: the writer's thread is lost, and nobody else with it.
TEST_F(PcapngEndTest, AFileThatNeverAnswersHoldsUpNobody) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  os::UniqueFd const reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const auto begin = std::chrono::steady_clock::now();
  {
    const auto writer =
        PcapngWriter::create(std::move(file), {.interface = "test",
                                               .program = "test",
                                               .ring_bytes = std::size_t{1} << 17,
                                               .farewell = std::chrono::milliseconds(50)});
    for (int i = 0; writer->dropped() == 0 && i < 100'000; ++i) write(*writer);
    EXPECT_NE(writer->dropped(), 0U);
    EXPECT_FALSE(writer->is_overdue());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace stp::trace
