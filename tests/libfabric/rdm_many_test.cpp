// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint of FI_EP_RDM pays for many peers and messages.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/libfabric/rdm_stranger.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test::rdm_many_test {
namespace {

using namespace rdm_stranger;

// Each read has a length of its own, so that its sender tells them apart. The bytes that are not
// read have come with the announcement.
TEST_F(RdmPeer, SixteenMessagesOfOneLengthAreReadAtOnce) {
  constexpr std::size_t kLength = 30'000, kMessages = 20, kReads = 16;
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  std::vector<std::vector<char>> got(kMessages, std::vector<char>(kLength));
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    stranger_.post();
    ASSERT_EQ(
        fi_trecv(b_->ep.get(), got[i].data(), kLength, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), 0);
    stranger_.send(kAnnounced, head(7, kLength, i + 1, 1), kHead + kTail);
  }
  const auto next_read = [&] {
    for (;;)
      if (const auto event = stranger_.next(); event.kind != STM_RECEIVE) return event;
  };
  std::vector<stm_event_t> reads;
  std::set<std::uint64_t> lengths;
  for (std::size_t i = 0; i < kReads; ++i) {
    reads.push_back(next_read());
    ASSERT_EQ(reads.back().kind, STM_READ_REQUEST);
    lengths.insert(reads.back().length);
  }
  EXPECT_EQ(lengths.size(), kReads);
  EXPECT_EQ(*lengths.rbegin(), kLength);
  EXPECT_EQ(*lengths.begin(), kLength - kTail);
  for (const auto& read : reads) stranger_.serve(read);
  for (std::size_t served = kReads; served < kMessages;)
    if (const auto event = next_read(); event.kind == STM_READ_REQUEST) {
      stranger_.serve(event);
      ++served;
    }
  std::size_t apart = 0;
  for (std::size_t i = 0; i < kMessages; ++i) EXPECT_EQ(b_->completed(b_->rx.get()).len, kLength);
  for (const auto& each : got) {
    const auto from_tail = std::ranges::find(each, 't');
    EXPECT_LE(each.end() - from_tail, static_cast<std::ptrdiff_t>(kTail));
    EXPECT_EQ(std::count(from_tail, each.end(), 't'), each.end() - from_tail);
    EXPECT_EQ(std::count(each.begin(), from_tail, 'r'), from_tail - each.begin());
    if (from_tail != each.end()) ++apart;
  }
  EXPECT_GE(apart, kReads - 1);
}

// Processor time of this thread.
std::chrono::nanoseconds time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Of one byte each, so that one is read at a time, and the stranger does not serve that.
TEST_F(RdmPeer, AnnouncedMessagesThatWaitForEachOtherCostReceivesLittle) {
  constexpr std::size_t kMany = 3'000, kSome = 200;
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    stranger_.send(kAnnounced, head(7, 1, i, 1), kHead + 1);
    stranger_.look(1);
  }
  stranger_.send(kEager, head(8, 0, 0, 1), kHead);
  await_message(8);
  std::vector<std::chrono::nanoseconds> times;
  char got = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto began = time_now();
    ASSERT_EQ(fi_trecv(b_->ep.get(), &got, 1, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), 0);
    times.push_back(time_now() - began);
  }
  const auto median = [](auto from) {
    std::nth_element(from, from + kSome / 2, from + kSome);
    return from[kSome / 2];
  };
  EXPECT_LT(median(times.end() - kSome), 5 * median(times.begin()));
}

// They have left as much as their connections could keep: nobody else may leave more, until it is
// received.
TEST_F(RdmPeer, ThoseWhoConnectAndGoLeaveABoundedNumberOfBytes) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "256", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  // So many are as much as 1,024 connections keep, the most of one host, beside what the last one
  // may bring: with each, 256 bytes count beside its own.
  constexpr std::size_t kLength = 8'192, kMessages = 32;
  std::size_t came = 0;
  const auto leave = [&] {
    Stranger other;
    other.progress = stranger_.progress;
    if (other.connect(b_->name()) != STM_CONNECTED) return false;
    for (int i = 0; i < 8; ++i, ++came) {
      other.send(kEager, head(came, kLength, 0, 1), kHead + kLength);
      await_message(came);
    }
    return true;
  };
  while (came < 2 * kMessages && leave()) {
  }
  EXPECT_GE(came, kMessages);
  EXPECT_LE(came, kMessages + 8);  // the end of the last one may not have been noticed
  std::vector<char> got(kLength);
  for (std::size_t i = 0; i < came; ++i) EXPECT_EQ(receive(got, i).len, kLength);
  EXPECT_TRUE(leave());
}

// Each may keep 20,000 bytes, and all together as much as 64.
TEST_F(RdmPeer, ThoseOfOneHostKeepNoMoreThanAFewMay) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "20000", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  constexpr std::size_t kFull = 64, kEach = 8, kLength = 2'000, kMany = 30;
  for (std::size_t i = 0; i < kFull; ++i) {
    ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
    for (std::size_t k = 0; k < kEach; ++k)
      stranger_.send(kEager, head(7, kLength, 0, 1), kHead + kLength);
    ASSERT_TRUE(becomes_true([&] { return stranger_.look(1), stranger_.outstanding() == 0; }));
  }
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  for (std::size_t i = 0; i < kMany; ++i) stranger_.send(kEager, head(8, 0, 0, 1), kHead);
  await_message(8);
  stranger_.look(1'000);
  EXPECT_GT(stranger_.outstanding(), kMany / 4);  // 16 have a buffer
  std::vector<char> got(kLength);
  for (std::size_t i = 0; i < kFull * kEach; ++i) EXPECT_EQ(receive(got, 7).len, kLength);
  EXPECT_TRUE(becomes_true([&] {
    await_message(8);  // which makes progress
    return stranger_.look(1), stranger_.outstanding() == 0;
  })) << "there is room again, whoever has made it";
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(receive(got, 8).len, 0U);
}

// tools/test --long lets so many come as there may be.
int at_most(int most, int otherwise) {
  return std::getenv("STP_LONG") != nullptr ? most : otherwise;
}

// The memory that this process has.
std::size_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, pages = 0;
  statm >> all >> pages;
  return pages * 4096;
}

// As many as there may be of one host, and no more. Each sends as many short messages as its ring
// has places, and all arrive whole. A connection costs both of its ends about the same; what
// messages cost has the pages that the other ends send from.
TEST_F(RdmPeer, AThousandPeersThatHaveSentCostLessThan64MiB) {
  constexpr int kMost = 1'024, kEach = 16, kAtOnce = 4;
  constexpr std::size_t kShort = 100, kLong = 17'000;
  const auto before = resident();
  ASSERT_EQ(stranger_.connect_all(b_->name(), kMost), kMost);
  EXPECT_EQ(stranger_.connect(b_->name()), STM_REFUSED);
  const auto connections = (resident() - before) / 2;
  constexpr std::size_t kTogether = 64;
  const auto cost_of_each = [&](std::size_t length) {
    std::vector<char> got(kTogether * kAtOnce * length);
    const auto held = resident();
    for (std::size_t i = 0; i < kMost;) {
      std::ranges::fill(got, 0);
      auto* to = got.data();
      for (const auto end = i + kTogether; i < end; ++i)
        for (int k = 0; k < kAtOnce; ++k, to += length) {
          EXPECT_EQ(fi_trecv(b_->ep.get(), to, length, nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
          stranger_.send_on(i, kEager, head(5, length, 0, 1), kHead + length);
        }
      receive_all(kTogether * kAtOnce, length);
      EXPECT_EQ(std::ranges::count(got, 't'), static_cast<std::ptrdiff_t>(got.size()));
    }
    return resident() - held;
  };
  std::size_t short_ones = 0;
  for (int k = 0; k < kEach; k += kAtOnce) short_ones += cost_of_each(kShort);
  std::fprintf(stderr, "%zu KiB for connections, %zu KiB for short messages\n", connections >> 10,
               short_ones >> 10);
  EXPECT_LT(connections >> 20, 32U);
  EXPECT_LT((connections + short_ones) >> 20, 64U);
  if (std::getenv("STP_LONG") == nullptr) return;
  const auto long_ones = cost_of_each(kLong);
  std::fprintf(stderr, "%zu KiB for long messages\n", long_ones >> 10);
  EXPECT_LT(long_ones >> 20, 64U);
}

// Bytes of files in memory that are mapped here: what programs share with a stpd, once each.
std::size_t shared_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::map<std::string, unsigned long long> files;  // by their inode: where the last of it ends
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, rights, offset, device, inode;
    words >> range >> rights >> offset >> device >> inode;
    const auto dash = range.find('-');
    const auto length = std::stoull(range.substr(dash + 1), nullptr, 16) -
                        std::stoull(range.substr(0, dash), nullptr, 16);
    auto& end = files[inode];
    end = std::max(end, std::stoull(offset, nullptr, 16) + length);
  }
  std::size_t sum = 0;
  for (const auto& [inode, end] : files) sum += end;
  return sum;
}

struct OnDaemon {
  Daemon daemon_;
  UseLink link_{daemon_.link()};
};

class RdmPeersOfStpd : private OnDaemon, public RdmPeer {};

// What is lent to a stpd is allocated at once, and stays. Counted for both ends of a connection, of
// which the one that sends has 40 KiB: a channel of 28, and a block of 12. So 1,024 peers cost an
// endpoint less than 64 MiB.
TEST_F(RdmPeersOfStpd, AreLentLittleWhileTheySendLittle) {
  const auto most = std::getenv("STP_LONG") != nullptr ? std::size_t{1'024} : std::size_t{56};
  const auto before = shared_bytes();
  const auto each = [&] { return (shared_bytes() - before) / most; };
  ASSERT_EQ(stranger_.connect_all(b_->name(), static_cast<int>(most)), static_cast<int>(most));
  const auto connected = each();
  std::vector<char> got(1'000);
  for (const auto length : {100U, 1'000U})
    for (std::size_t i = 0; i < most; ++i) {
      EXPECT_EQ(
          fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr),
          0);
      stranger_.send_on(i, kEager, head(5, length, 0, 1), kHead + length);
      receive_all(1, length);
    }
  std::fprintf(stderr, "%zu bytes while connected, %zu after two messages\n", connected, each());
  EXPECT_LT(each() >> 10, 64U + 40U);
  // The channels of those that have gone are given back, at both ends, though nobody else comes.
  const auto held = each();
  stranger_.end_all();
  EXPECT_TRUE(becomes_true([&] {
    stranger_.look(1);
    return each() + (50 << 10) < held;
  }));
}

// They are rejected, and nothing of them stays, nor do they fill the log.
TEST_F(RdmPeer, StrangersAreRejectedHoweverManyTheyAre) {
  const auto many = at_most(10'000, 20);
  const auto before = resident();
  const Log log;
  for (int i = 0; i < many; ++i) ASSERT_EQ(stranger_.connect(b_->name(), 1), STM_REFUSED);
  EXPECT_TRUE(log.says("rejected (16 so far)"));
  EXPECT_FALSE(log.says("rejected (17 so far)"));
  EXPECT_LT((resident() - before) >> 20, 16U);
  std::vector<char> got(5);
  send_early("still", 1);
  EXPECT_EQ(receive(got, 1).len, 5U);
}

}  // namespace
}  // namespace stp::test::rdm_many_test
