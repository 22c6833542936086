// SPDX-License-Identifier: BSD-3-Clause
// A Write at level 0, as the libst document's section 10 has it: RTS, CTS, DATA, RS, RSR.
#include <cstring>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

constexpr std::size_t kBufsize = 16'384;
constexpr unsigned kBlocksize = 16;

class Transfer : public ConnectedTest {
 protected:
  void map(std::size_t bytes) {
    source_.emplace(bytes, 3);
    target_.emplace(bytes, 0, false);
    ASSERT_EQ(st_map(client_, ST_MAP_TX, source_->data(), source_->length(), 0, -1, &source_region_,
                     nullptr),
              0);
    ASSERT_EQ(st_map(server_, ST_MAP_RX, target_->data(), target_->length(), 0, -1, &target_region_,
                     &mx_),
              0);
  }

  // The client announces, the server lets it send Block after Block.
  void announce(std::uint64_t bytes) {
    auto rts = header(ST_OP_RTS);
    rts.cts_req = 1;
    rts.max_block = kBlocksize;
    rts.d_id = ST_NO_ID;
    rts.s_id = 7;
    st_set_t_len(&rts, bytes);
    ASSERT_EQ(send(connected_, rts), 0);
    ASSERT_EQ(receive(accepted_, got_), 0);
    ASSERT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_RTS});
    ASSERT_EQ(st_t_len(&got_), bytes);
    ASSERT_EQ(got_.s_id, 7u);
  }

  void permit(std::uint32_t block) {
    auto cts = header(ST_OP_CTS);
    cts.blocksize = kBlocksize;
    cts.r_mx = static_cast<std::uint16_t>(mx_);
    cts.r_bufx = block * ((1u << kBlocksize) / kBufsize);
    cts.b_num = block;
    cts.d_id = 7;
    cts.s_id = 9;
    ASSERT_EQ(send(accepted_, cts), 0) << st_strerror(-ERANGE);
    ASSERT_EQ(receive(connected_, got_), 0);
    ASSERT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_CTS});
  }

  // Answers the CTS that was received last.
  void send_block(std::size_t bytes, unsigned flags = 0, void* append = nullptr) {
    auto data = header(ST_OP_DATA, flags);
    data.r_mx = got_.r_mx;
    data.r_bufx = got_.r_bufx;
    data.r_offset = got_.r_offset;
    data.b_num = got_.b_num;
    data.d_id = got_.s_id;
    data.opaque = 0xabcd;
    auto const first = static_cast<int>(got_.b_num * ((1u << kBlocksize) / kBufsize));
    auto const error = st_tx(connected_, &data, append, static_cast<int>(bytes), first, 0);
    ASSERT_EQ(error, 0) << st_strerror(error);
  }

  void expect_target_equals_source(std::size_t bytes) {
    EXPECT_EQ(std::memcmp(target_->data(), source_->data(), bytes), 0);
  }

  std::optional<Buffer> source_, target_;
  st_mhandle_t source_region_ = nullptr, target_region_ = nullptr;
  int mx_ = -1;
  st_header_t got_{};
};
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
    // As many as there are Slots at the receiver go without its reading.
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
