// SPDX-License-Identifier: BSD-3-Clause
// Requests in close succession: they may be sent together, and all of them are sent.
#include <chrono>
#include <thread>

#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

class Rows : public WriteTest {
 protected:
  static constexpr std::uint32_t kRegion = 9, kWindow = 1024;
  static constexpr int kLength = 8;

  void SetUp() override {
    WriteTest::SetUp();
    map(kBufsize);
    auto mra = header(ST_OP_MRA);
    mra.b_win = kWindow;
    mra.r_mx = static_cast<std::uint16_t>(mx_);
    mra.s_id = kRegion;
    st_set_t_len(&mra, kBufsize);
    ASSERT_EQ(send(accepted_, mra), 0);
    ASSERT_EQ(receive(connected_, got_), 0);
  }

  // Puts Block number `block` to its own place.
  void put(std::uint32_t block, unsigned flags = 0) {
    auto data = header(ST_OP_DATA, ST_FLAG_SILENT | flags);
    data.r_mx = got_.r_mx;
    data.r_offset = block * kLength;
    data.b_num = block;
    data.d_id = kRegion;
    ASSERT_EQ(st_tx(connected_, &data, nullptr, kLength, 0, static_cast<int>(block) * kLength), 0);
  }
};
STP_BOTH_WAYS(Rows);

TEST_P(Rows, WhatIsHeldForALongerBurstLeavesWithoutAnotherCall) {
  constexpr std::uint32_t kCount = 45;  // more than a burst
  constexpr std::size_t kLast = kCount * kLength - 1;
  (*source_)[kLast] = 1;
  for (std::uint32_t block = 0; block < kCount; ++block) put(block);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!has_arrived(&(*target_)[kLast]) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(has_arrived(&(*target_)[kLast]));
  ASSERT_EQ(st_flush(connected_), 0);
  expect_target_equals_source(kCount * kLength);
}

TEST_P(Rows, LongOnesKeepTheirOrderAndNothingIsLost) {
  constexpr std::uint32_t kCount = 1000;
  for (std::uint32_t block = 0; block + 1 < kCount; ++block) put(block);
  put(kCount - 1, ST_FLAG_SEND_STATE);
  st_header_t state;
  ASSERT_EQ(receive(connected_, state), 0);
  ASSERT_EQ(ST_OP(state.op_flags), unsigned{ST_OP_RSR});
  EXPECT_EQ(state.b_seq, kCount) << "all before it are there, too";
  expect_target_equals_source(kCount * kLength);
}

}  // namespace
}  // namespace stp::test
