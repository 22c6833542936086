// SPDX-License-Identifier: BSD-3-Clause
// Errors that st_tx and st_rx return at once.
#include <chrono>

#include "tests/libst/libst_fixture.h"

namespace stp::test::transmit_checks_test {
namespace {

constexpr int kBufsize = 16'384;

// A base, so that the endpoints are closed before the memory that they send from is freed.
struct SentFrom {
  Buffer buffer_{4 * kBufsize};
};

class Checks : protected SentFrom, public ConnectedTest {
 protected:
  void SetUp() override {
    ConnectedTest::SetUp();
    // Bufx 0..3 and 4..5 are adjacent, 8..9 are separate.
    map_tx(0, 4);
    map_tx(4, 2);
    map_tx(8, 2);
    ASSERT_EQ(st_map(client_, ST_MAP_RX, buffer_.data(), -1, 20, 4, &region_, &mx_), 0);
  }
  void map_tx(int base, int count) {
    ASSERT_EQ(st_map(client_, ST_MAP_TX, buffer_.data(), -1, base, count, &region_, nullptr), 0);
  }
  int data(int len, int bufx, int off) {
    auto h = header(ST_OP_DATA);
    return st_tx(connected_, &h, nullptr, len, bufx, off);
  }
  int grant(int mx, std::uint32_t bufx, std::uint32_t offset) {
    auto h = header(ST_OP_CTS);
    h.blocksize = 14;
    h.r_mx = static_cast<std::uint16_t>(mx);
    h.r_bufx = bufx;
    h.r_offset = offset;
    h.s_id = next_id_++;
    return send(connected_, h);
  }

  st_mhandle_t region_ = nullptr;
  int mx_ = -1;
  std::uint32_t next_id_ = 1;
};
STP_BOTH_WAYS(Checks);

TEST_P(Checks, ConnectionOperationsAreNotForUsers) {
  for (const auto op : {ST_OP_RC, ST_OP_CA, ST_OP_RD, ST_OP_DA, ST_OP_DC})
    EXPECT_EQ(send(connected_, header(static_cast<unsigned>(op))), -EPERM);
}

TEST_P(Checks, HeadersThatAreNoneAreInvalid) {
  for (const unsigned op : {0x00u, 0x06u, 0x11u, 0x12u, 0x19u})
    EXPECT_EQ(send(connected_, header(op)), -EINVAL) << op;
  EXPECT_EQ(send(connected_, header(ST_OP_NOP, 0x0001)), -EINVAL) << "a bit that is none";
  EXPECT_EQ(send(connected_, header(ST_OP_GET, 0x0600)), -EINVAL) << "a function that is none";
  EXPECT_EQ(send(connected_, header(ST_OP_NOP, ST_FLAG_FETCH_ADD)), -EINVAL);
  EXPECT_EQ(send(connected_, header(ST_OP_GET, ST_FLAG_FETCH_ADD)), -EINVAL) << "no operands";
  EXPECT_EQ(send(connected_, header(ST_OP_RTR)), -EINVAL) << "T_len 0";
  auto rts = header(ST_OP_RTS);
  rts.max_block = 32;
  EXPECT_EQ(send(connected_, rts), -EINVAL);
}

TEST_P(Checks, ArgumentsThatMakeNoSenseAreInvalid) {
  EXPECT_EQ(st_tx(connected_, nullptr, nullptr, 0, 0, 0), -EINVAL);
  EXPECT_EQ(data(-1, 0, 0), -EINVAL);
  EXPECT_EQ(data(1, 0, -1), -EINVAL);
  auto nop = header(ST_OP_NOP);
  EXPECT_EQ(st_tx(connected_, &nop, nullptr, 1, 0, 0), -EINVAL) << "only DATA has a length";
}

TEST_P(Checks, DataComesFromMappedTransmitMemoryOnly) {
  EXPECT_EQ(data(6 * kBufsize, 0, 0), 0) << "over two maps that adjoin";
  EXPECT_EQ(data(kBufsize, 9, 0), 0);
  EXPECT_EQ(data(kBufsize + 1, 9, 0), -ERANGE);
  EXPECT_EQ(data(kBufsize, 9, 1), -ERANGE);
  EXPECT_EQ(data(6 * kBufsize + 1, 0, 0), -ERANGE) << "into the gap";
  EXPECT_EQ(data(1, 6, 0), -ERANGE);
  EXPECT_EQ(data(1, 20, 0), -ERANGE) << "receive memory";
  EXPECT_EQ(data(1, -1, 0), -ERANGE);
  EXPECT_EQ(data(1, 0, kBufsize), -ERANGE) << "an offset beyond its buffer";
}

TEST_P(Checks, MemoryThatWasJustSentFromIsOutOfReachOnceItIsUnmapped) {
  st_mhandle_t region = nullptr;
  ASSERT_EQ(st_map(client_, ST_MAP_TX, buffer_.data(), -1, 12, 2, &region, nullptr), 0);
  EXPECT_EQ(data(2 * kBufsize, 12, 0), 0);
  EXPECT_EQ(data(1, 13, 0), 0);
  ASSERT_EQ(st_unmap(region), 0);
  EXPECT_EQ(data(1, 12, 0), -ERANGE);
  EXPECT_EQ(data(1, 13, 0), -ERANGE);
  EXPECT_EQ(data(1, 8, 0), 0) << "other memory is not";
}

TEST_P(Checks, WhereDataGoesIsCheckedAgainstWhatThePeerAnnounced) {
  auto h = header(ST_OP_DATA);
  h.r_offset = kBufsize;
  EXPECT_EQ(st_tx(connected_, &h, nullptr, 1, 0, 0), -ERANGE);
}

TEST_P(Checks, OnlyWhatIsMappedCanBeGranted) {
  EXPECT_EQ(grant(mx_, 20, 0), 0);
  EXPECT_EQ(grant(mx_, 23, 100), 0);
  EXPECT_EQ(grant(mx_, 24, 0), -ERANGE);
  EXPECT_EQ(grant(mx_, 19, 0), -ERANGE);
  EXPECT_EQ(grant(mx_, 20, kBufsize), -ERANGE);
  EXPECT_EQ(grant(mx_ + 1, 20, 0), -ERANGE);
  EXPECT_EQ(grant(0, 20, 0), -ERANGE);
  auto mra = header(ST_OP_MRA);
  st_set_t_len(&mra, 1);
  EXPECT_EQ(send(connected_, mra), -ERANGE);
  mra = header(ST_OP_MRA, ST_FLAG_REJECT);
  EXPECT_EQ(send(connected_, mra), 0) << "a refusal grants nothing";
  ASSERT_EQ(st_unmap(region_), 0);
  EXPECT_EQ(grant(mx_, 20, 0), -ERANGE);
}

TEST_P(Checks, AnMxOfOneConnectionIsNoneOfAnother) {
  st_chandle_t other = nullptr;
  ASSERT_EQ(st_connect(client_, ":3000", &other), 0);
  int mx = -1;
  ASSERT_EQ(st_mx_alloc(other, region_, &mx), 0);
  EXPECT_EQ(grant(mx, 20, 0), -ERANGE);
  EXPECT_EQ(st_mx_free(connected_, mx), -ERANGE);
  EXPECT_EQ(st_mx_free(other, mx), 0);
}

// ---- st_rx ----

TEST_P(Checks, ReceivingWithATimeoutReturnsWhenItHasPassed) {
  st_header_t got;
  timeval none{0, 0}, some{0, 20'000}, wrong{0, 1'000'000}, negative{-1, 0};
  EXPECT_EQ(st_rx(connected_, &got, nullptr, &none), -EWOULDBLOCK);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(st_rx(connected_, &got, nullptr, &some), -EWOULDBLOCK);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(st_rx(connected_, &got, nullptr, &wrong), -EINVAL);
  EXPECT_EQ(st_rx(connected_, &got, nullptr, &negative), -EINVAL);
  EXPECT_EQ(st_rx(connected_, nullptr, nullptr, &none), -EINVAL);
}

TEST_P(Checks, APollingProgramGetsOnWithoutEverBlocking) {
  st_header_t got;
  ASSERT_EQ(send(accepted_, header(ST_OP_NOP)), 0);
  int result = -EWOULDBLOCK;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (result == -EWOULDBLOCK && std::chrono::steady_clock::now() < limit)
    result = poll(connected_, got);
  EXPECT_EQ(result, 0);
}

TEST_P(Checks, FlushingAnEndpointFlushesItsConnections) {
  for (int i = 0; i < 8; ++i) ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  EXPECT_EQ(st_flush(client_), 0);
  EXPECT_EQ(st_flush(connected_), 0);
  EXPECT_EQ(st_flush(server_), 0);
}

TEST_P(Checks, FlushTellsOnceOfWhatCouldNotLeaveAfterAll) {
  constexpr int kSlots = 64;
  ASSERT_EQ(option(connected_, ST_OPT_TX_CREDITS), unsigned{kSlots});
  for (int i = 0; i < kSlots; ++i) ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(st_map(client_, ST_MAP_TX, buffer_.data(), -1, 30, 1, &region_, nullptr), 0);
  ASSERT_EQ(data(100, 30, 0), 0) << "it waits: the other side has no Slot left";
  ASSERT_EQ(st_unmap(region_), 0);
  st_header_t got;
  for (int i = 0; i < kSlots; ++i) ASSERT_EQ(receive(accepted_, got), 0);
  EXPECT_EQ(st_flush(connected_), -EIO);
  EXPECT_EQ(st_flush(connected_), 0);
}

}  // namespace
}  // namespace stp::test::transmit_checks_test
