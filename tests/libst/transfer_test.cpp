// SPDX-License-Identifier: BSD-3-Clause
// A Write at level 0 as in section 10 of the libst document: RTS, CTS, DATA, RS, RSR.
#include <cstring>

#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

using Transfer = WriteTest;
STP_BOTH_WAYS(Transfer);

TEST_P(Transfer, MovesEveryByteOfManyBlocksIntoTheReceiversMemory) {
  constexpr std::size_t kBlock = 1u << kBlocksize, kBytes = 4 * kBlock;
  map(kBytes);
  announce(kBytes);
  for (std::uint32_t block = 0; block < 4; ++block) {
    permit(block);
    send_block(kBlock);
    ASSERT_EQ(receive(accepted_, got_), 0);
    EXPECT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_DATA});
    EXPECT_EQ(got_.b_num, block);
    EXPECT_EQ(got_.opaque, 0xabcdu);
  }
  expect_target_equals_source(kBytes);
  EXPECT_EQ(st_flush(connected_), 0);
}

TEST_P(Transfer, DeliversTheAppendWithTheBlocksHeader) {
  map(kBufsize * 4);
  announce(100);
  permit(0);
  char append[ST_APPEND_SIZE] = "appended", received[ST_APPEND_SIZE] = {};
  send_block(100, 0, append);
  ASSERT_EQ(receive(accepted_, got_, received), 1);
  EXPECT_NE(ST_FLAGS(got_.op_flags) & ST_FLAG_APPEND, 0u);
  EXPECT_EQ(std::memcmp(append, received, sizeof append), 0);
  expect_target_equals_source(100);
}

TEST_P(Transfer, AnEmptyBlockIsABlock) {
  map(kBufsize * 4);
  announce(0);
  permit(0);
  send_block(0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_DATA});
}

TEST_P(Transfer, SilentDataArrivesWithoutAHeaderAndTheStateTellsOfIt) {
  map(kBufsize * 4);
  announce(kBufsize);
  permit(0);
  send_block(kBufsize, ST_FLAG_SILENT);
  auto rs = header(ST_OP_RS);
  rs.sync = 42;
  rs.b_num = ST_NO_ID;
  rs.d_id = 9;
  rs.s_id = 7;
  ASSERT_EQ(send(connected_, rs), 0);
  ASSERT_EQ(receive(connected_, got_), 0);
  EXPECT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_RSR});
  EXPECT_EQ(got_.sync, 42u);
  EXPECT_EQ(got_.b_seq, 1u);
  expect_target_equals_source(kBufsize);
  EXPECT_EQ(poll(accepted_, got_), -EWOULDBLOCK);
}

TEST_P(Transfer, SourceMayBeginAnywhereAndCrossBuffers) {
  map(kBufsize * 4);
  announce(kBufsize);
  permit(0);
  auto data = header(ST_OP_DATA);
  data.r_mx = got_.r_mx;
  data.r_bufx = got_.r_bufx;
  data.d_id = got_.s_id;
  ASSERT_EQ(st_tx(connected_, &data, nullptr, kBufsize, 1, 777), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(std::memcmp(target_->data(), source_->data() + kBufsize + 777, kBufsize), 0);
}

TEST_P(Transfer, WhatHasArrivedIsReadBeforeTheEndOfTheConnectionIsTold) {
  auto nop = header(ST_OP_NOP);
  for (nop.s_id = 1; nop.s_id <= 3; ++nop.s_id) ASSERT_EQ(send(connected_, nop), 0);
  ASSERT_EQ(st_close(connected_), 0);
  for (unsigned i = 1; i <= 3; ++i) {
    ASSERT_EQ(receive(accepted_, got_), 0);
    EXPECT_EQ(got_.s_id, i);
  }
  EXPECT_EQ(receive(accepted_, got_), -ENOTCONN);
  EXPECT_EQ(send(accepted_, nop), -ENOTCONN);
}

TEST_P(Transfer, OptionPayloadTravelsWithControlOperations) {
  char option[ST_OPTION_SIZE] = "operands", received[ST_APPEND_SIZE] = {};
  ASSERT_EQ(send(connected_, header(ST_OP_NOP), option), 0);
  ASSERT_EQ(receive(accepted_, got_, received), 1);
  EXPECT_EQ(std::memcmp(option, received, sizeof option), 0);
}

TEST_P(Transfer, PortsAndKeysAreSetWhateverTheCallerWrote) {
  auto nop = header(ST_OP_NOP);
  nop.d_port = 1;
  nop.s_port = 2;
  nop.d_key = 3;
  nop.cksum = 4;
  ASSERT_EQ(send(connected_, nop), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(got_.s_port, option(connected_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(got_.d_port, option(accepted_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(got_.d_key, option(accepted_, ST_OPT_KEY_LOCAL));
}

TEST_P(Transfer, MoreRequestsThanTheQueueHoldsAllArrive) {
  constexpr unsigned kMany = 500;
  unsigned sent = 0, received = 0;
  auto nop = header(ST_OP_NOP);
  while (received < kMany) {
    // As many as the receiver has Slots can be sent before it reads.
    for (unsigned i = 0; i < 40 && sent < kMany; ++i) {
      nop.s_id = sent++;
      ASSERT_EQ(send(connected_, nop), 0);
    }
    for (; received < sent; ++received) {
      ASSERT_EQ(receive(accepted_, got_), 0);
      ASSERT_EQ(got_.s_id, received);
    }
  }
}

}  // namespace
}  // namespace stp::test
