// SPDX-License-Identifier: BSD-3-Clause
// The cost of checking a long trace. Prints the time. Asserts only what does not depend on the
// machine: no findings, and memory does not grow with the trace.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "stp/wire/frame.h"
#include "tools/replay/check/checker.h"
#include "tools/sim/live_bytes.h"

namespace stp::replay {
namespace {

using wire::Header;
using wire::Op;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kFrames = 100'000;
#else
constexpr unsigned kFrames = 1'000'000;
#endif
constexpr std::uint16_t kConnections = 100;
constexpr MacAddr kMacA{{2, 0, 0, 0, 0, 1}}, kMacB{{2, 0, 0, 0, 0, 2}};

// Writes Puts on many connections, each answered, as a pcap stream that is not stored on a disk.
class Writer {
 public:
  explicit Writer(int descriptor) : file_(fdopen(descriptor, "wb")) {
    for (const auto word : {0xa1b23c4dU, 0x00040002U, 0U, 0U, 262'144U, 1U}) put(word);
  }
  ~Writer() { std::fclose(file_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void run() {
    for (std::uint16_t port = 1; port <= kConnections; ++port) open(port);
    for (std::uint32_t number = 0; written_ < kFrames; ++number)
      for (std::uint16_t port = 1; port <= kConnections; ++port) put_block(port, number);
  }

 private:
  static Header header(Op op, std::uint16_t port, std::uint16_t flags = 0) {
    Header h;
    h.op_flags = wire::op_flags(op, flags);
    h.d_port = h.s_port = port;
    h.d_key = 1000U + port;
    return h;
  }
  void open(std::uint16_t port) {
    auto rc = header(Op::kRequestConnection, port);
    rc.d_port = 0;
    rc.d_key = 0;
    rc.param = 64;
    rc.bufx = 12;
    rc.offset = 1000U + port;
    rc.sync = 10;
    say(rc, true);
    auto ca = header(Op::kConnectionAnswer, port);
    ca.param = rc.param;
    ca.bufx = rc.bufx;
    ca.offset = rc.offset;
    ca.sync = rc.sync;
    say(ca, false);
    auto rmr = header(Op::kRequestMemoryRegion, port);
    rmr.param = 1;
    rmr.set_t_len(4096);
    rmr.s_id = 1;
    say(rmr, true);
    auto mra = header(Op::kMemoryRegionAvailable, port);
    mra.param = 1;
    mra.mx = 1;
    mra.set_t_len(4096);
    mra.d_id = 1;
    mra.s_id = 2;
    say(mra, false);
  }
  void put_block(std::uint16_t port, std::uint32_t number) {
    auto data = header(Op::kData, port, wire::flag::kLast | wire::flag::kSendState);
    data.mx = 1;
    data.sync = number;
    data.b_num = number;
    data.d_id = 2;
    say(data, true, 64);
    auto rsr = header(Op::kRequestStateResponse, port);
    rsr.param = 63;
    rsr.offset = number + 1;
    rsr.sync = number;
    rsr.b_num = number;
    rsr.d_id = 1;
    rsr.s_id = 2;
    say(rsr, false);
  }
  void say(const Header& h, bool from_a, std::size_t payload = 0) {
    std::array<std::byte, 256> frame{};
    const std::array<std::byte, 64> bytes{};
    const wire::Envelope envelope{from_a ? kMacB : kMacA, from_a ? kMacA : kMacB, {}, false};
    const auto length = wire::emit(envelope, h, Bytes(bytes).first(payload), {}, frame);
    time_ += 1000;
    for (const auto word : {1'700'000'000U + static_cast<std::uint32_t>(time_ / kSecond),
                            static_cast<std::uint32_t>(time_ % kSecond),
                            static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(length)})
      put(word);
    std::fwrite(frame.data(), 1, length, file_);
    ++written_;
  }
  void put(std::uint32_t word) { std::fwrite(&word, sizeof word, 1, file_); }

  std::FILE* file_;
  Time time_ = 0;
  unsigned written_ = 0;
};

TEST(LongTrace, is_checked_fast_and_in_memory_that_does_not_grow_with_it) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  std::jthread const writing([&] { Writer(ends[1]).run(); });
  std::string error;
  auto capture = Capture::read(fdopen(ends[0], "rb"), "pipe", error);
  ASSERT_TRUE(capture) << error;
  std::string first_finding;
  Checker checker([&](const Finding& finding) { first_finding = line_of(finding); });
  Decoder decoder;
  CapturedFrame captured;
  std::size_t early = 0;
  unsigned frames = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (capture->next(captured)) {
    checker.frame(decoder.decode(captured));
    // By then the state of every connection has reached its full size.
    if (++frames == kFrames * 7 / 8) early = test::live_bytes();
  }
  const auto late = test::live_bytes();
  checker.finish();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(first_finding, "");
  EXPECT_LE(late, early + early / 8);
  std::printf(
      "%u frames of %u connections in %.2f s (%.0f a second, writing them included), %zu KiB\n",
      frames, kConnections, took.count(), frames / took.count(), late / 1024);
}

}  // namespace
}  // namespace stp::replay
