// SPDX-License-Identifier: BSD-3-Clause
// The libst document, section 10: data transfer on connections. (10.2: the connectionless tests.)
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

class Section10 : public WriteTest {
 protected:
  int receive_within(st_chandle_t chandle, timeval limit) {
    return st_rx(chandle, &got_, nullptr, &limit);
  }
};
STP_BOTH_WAYS(Section10);

// ---- 10.1.1 st_tx ----

TEST_P(Section10, AControlMessageIsDeliveredIntoTheScheduleHeaderQueue) {
  auto nop = header(ST_OP_NOP);
  nop.b_num = 42;
  ASSERT_EQ(send(connected_, nop), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_NOP});
  EXPECT_EQ(got_.b_num, 42u);
}

TEST_P(Section10, ADataMessageIsDeliveredIntoTheReceiversMemory) {
  map(kBufsize * 4);
  announce(1000);
  permit(0);
  send_block(1000);
  ASSERT_EQ(receive(accepted_, got_), 0);
  expect_target_equals_source(1000);
  EXPECT_EQ((*target_)[1000], 0);
}

TEST_P(Section10, OptionalPayloadOfAControlMessageIs32Bytes) {
  char words[ST_OPTION_SIZE] = "thirty-two bytes", received[ST_APPEND_SIZE] = {};
  ASSERT_EQ(send(connected_, header(ST_OP_NOP), words), 0);
  ASSERT_EQ(receive(accepted_, got_, received), 1);
  EXPECT_EQ(std::memcmp(words, received, sizeof words), 0);
}

TEST_P(Section10, OptionalPayloadOfADataMessageIs64BytesOfAppend) {
  map(kBufsize * 4);
  announce(100);
  permit(0);
  char words[ST_APPEND_SIZE] = "sixty-four bytes", received[ST_APPEND_SIZE] = {};
  send_block(100, 0, words);
  ASSERT_EQ(receive(accepted_, got_, received), 1);
  EXPECT_EQ(std::memcmp(words, received, sizeof words), 0);
}

TEST_P(Section10, ConnectionMessagesAreNotTheUsersToSend) {
  for (const unsigned op : {ST_OP_RC, ST_OP_CA, ST_OP_RD, ST_OP_DA, ST_OP_DC})
    EXPECT_EQ(send(connected_, header(op)), -EPERM);
}

TEST_P(Section10, LengthIsOfDataMessagesOnly) {
  auto nop = header(ST_OP_NOP);
  EXPECT_EQ(st_tx(connected_, &nop, nullptr, 1, 0, 0), -EINVAL);
}

TEST_P(Section10, TheSourceMayCrossBufxBoundaries) {
  map(kBufsize * 4);
  announce(kBufsize);
  permit(0);
  auto data = header(ST_OP_DATA);
  data.r_mx = got_.r_mx;
  data.d_id = got_.s_id;
  ASSERT_EQ(st_tx(connected_, &data, nullptr, kBufsize, 1, 777), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(std::memcmp(target_->data(), source_->data() + kBufsize + 777, kBufsize), 0);
}

TEST_P(Section10, TheDestinationMayCrossBufxBoundariesAndTilingIsTheLibrarys) {
  map(kBufsize * 4);
  announce(2 * kBufsize);
  auto cts = header(ST_OP_CTS);
  cts.blocksize = kBlocksize;
  cts.r_mx = static_cast<std::uint16_t>(mx_);
  cts.r_bufx = 1;
  cts.r_offset = 5000;
  cts.d_id = 7;
  cts.s_id = 9;
  ASSERT_EQ(send(accepted_, cts), 0);
  ASSERT_EQ(receive(connected_, got_), 0);
  send_block(2 * kBufsize);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(std::memcmp(target_->data() + kBufsize + 5000, source_->data(), 2 * kBufsize), 0);
}

TEST_P(Section10, ProgressIsMadeInTheBackgroundAfterTxReturns) {
  constexpr std::size_t kBytes = std::size_t{1} << kBlocksize;
  map(kBytes);
  announce(kBytes);
  permit(0);
  send_block(kBytes);
  // No thread of the program is inside libst now, but the bytes still arrive.
  const auto last = &(*target_)[kBytes - 1];
  const auto begin = std::chrono::steady_clock::now();
  while (!has_arrived(last) && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(has_arrived(last));
  ASSERT_EQ(receive(accepted_, got_), 0);
  expect_target_equals_source(kBytes);
}

// ---- 10.1.2 st_rx ----

TEST_P(Section10, RxReturnsZeroWithoutAndOneWithOptionPayload) {
  char words[ST_OPTION_SIZE] = {}, received[ST_APPEND_SIZE];
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(send(connected_, header(ST_OP_NOP), words), 0);
  EXPECT_EQ(receive(accepted_, got_, received), 0);
  EXPECT_EQ(receive(accepted_, got_, received), 1);
}

TEST_P(Section10, WithoutATimeoutRxBlocksIndefinitely) {
  std::atomic<int> result = -1;
  std::thread receiving([&] {
    st_header_t got;
    result = st_rx(accepted_, &got, nullptr, nullptr);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(result, -1);
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  receiving.join();
  EXPECT_EQ(result, 0);
}

TEST_P(Section10, WhoWaitsInRxUsesNoCpu) {
  std::atomic<double> used = -1;
  std::thread receiving([&] {
    const auto seconds = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    const auto before = seconds();
    st_header_t got;
    EXPECT_EQ(st_rx(accepted_, &got, nullptr, nullptr), 0);
    used = seconds() - before;
  });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  receiving.join();
  EXPECT_LT(used, 0.1) << "of a second";
}

TEST_P(Section10, ATimeoutIsASelectTimeout) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(receive_within(accepted_, {0, 0}), -EWOULDBLOCK);
  EXPECT_EQ(receive_within(accepted_, {0, 30'000}), -EWOULDBLOCK);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_EQ(receive_within(accepted_, {0, 1'000'000}), -EINVAL);
  EXPECT_EQ(receive_within(accepted_, {-1, 0}), -EINVAL);
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive_within(accepted_, {20, 0}), 0);
}

// ---- 10.3.1 st_flush ----

TEST_P(Section10, AfterFlushTheTransmitBufferMayBeUsedAgain) {
  constexpr std::size_t kBytes = std::size_t{1} << kBlocksize;
  map(kBytes);
  announce(kBytes);
  permit(0);
  send_block(kBytes);
  ASSERT_EQ(st_flush(connected_), 0);
  for (std::size_t i = 0; i < kBytes; ++i) (*source_)[i] = 0xee;
  ASSERT_EQ(receive(accepted_, got_), 0);
  const Buffer same(kBytes, 3);
  EXPECT_EQ(std::memcmp(target_->data(), same.data(), kBytes), 0);
}

TEST_P(Section10, FlushTakesAnEndpointOrAConnection) {
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  EXPECT_EQ(st_flush(client_), 0);
  EXPECT_EQ(st_flush(connected_), 0);
  EXPECT_EQ(st_flush(nullptr), -EBADF);
}

}  // namespace
}  // namespace stp::test
