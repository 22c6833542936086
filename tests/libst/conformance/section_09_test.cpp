// SPDX-License-Identifier: BSD-3-Clause
// The libst document, section 9: memory management.
#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

constexpr int kBuffer = 16'384;

class Section09 : public ConnectedTest {
 protected:
  int map(int flags, void* at, int len, int base, int count, int* mx = nullptr) {
    return st_map(client_, flags, at, len, base, count, &region_, mx);
  }
  Buffer memory_{4 * kBuffer};
  st_mhandle_t region_ = nullptr;
  int mx_ = -1;
};
STP_BOTH_WAYS(Section09);

// ---- 9.1 st_map ----

TEST_P(Section09, MapForTransmitNeedsNoMxAndForReceiveGivesOne) {
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), -1, 0, 4), 0);
  EXPECT_EQ(map(ST_MAP_RX, memory_.data(), -1, 0, 4, &mx_), 0);
  EXPECT_GT(mx_, 0);
  EXPECT_LE(mx_, 0xffff);
}

TEST_P(Section09, FlagsAreTransmitOrReceive) {
  EXPECT_EQ(map(0, memory_.data(), -1, 0, 1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX | ST_MAP_RX, memory_.data(), -1, 0, 1), -EINVAL);
}

TEST_P(Section09, AddressAndLengthAreAlignedToTheBufferSize) {
  EXPECT_EQ(map(ST_MAP_TX, memory_.data() + 4096, kBuffer, 0, -1), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), kBuffer + 4096, 0, -1), -EINVAL);
}

TEST_P(Section09, LengthOrCountMayBeMinusOne) {
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), -1, 0, 2), 0);
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), 2 * kBuffer, 2, -1), 0);
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), -1, 4, -1), -EINVAL);
}

TEST_P(Section09, LengthAndCountMustExactlyAgree) {
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), 2 * kBuffer, 0, 3), -EINVAL);
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), 2 * kBuffer, 0, 2), 0);
}

TEST_P(Section09, BaseIsTheBufxOfTheBeginningOfTheBuffer) {
  ASSERT_EQ(map(ST_MAP_TX, memory_.data(), -1, 10, 2), 0);
  auto data = header(ST_OP_DATA);
  EXPECT_EQ(st_tx(connected_, &data, nullptr, 1, 9, 0), -ERANGE);
  EXPECT_EQ(st_tx(connected_, &data, nullptr, 1, 12, 0), -ERANGE);
  EXPECT_EQ(st_tx(connected_, &data, nullptr, 2 * kBuffer, 10, 0), 0);
}

TEST_P(Section09, OverlappingMemoryMayBeMappedInSeparateCalls) {
  EXPECT_EQ(map(ST_MAP_RX, memory_.data(), -1, 0, 4, &mx_), 0);
  EXPECT_EQ(map(ST_MAP_RX, memory_.data() + kBuffer, -1, 100, 2, &mx_), 0);
  EXPECT_EQ(map(ST_MAP_RX, memory_.data(), -1, 200, 4, &mx_), 0);
}

TEST_P(Section09, ARegionMayBeMappedForTransmitByOneCallAndForReceiveByAnother) {
  EXPECT_EQ(map(ST_MAP_TX, memory_.data(), -1, 0, 4), 0);
  EXPECT_EQ(map(ST_MAP_RX, memory_.data(), -1, 0, 4, &mx_), 0);
}

class Section09Small : public LibstTest {};
STP_BOTH_WAYS(Section09Small);

TEST_P(Section09Small, CountIsAtMost64k) {
  constexpr int kMost = 65'536;
  Endpoint endpoint;
  set_option(endpoint, ST_OPT_BUFSIZE_LOCAL, 8);
  set_option(endpoint, ST_OPT_RX_BUFX_COUNT, 2 * kMost);
  Buffer memory((kMost + 1) * std::size_t{256}, 0, false);
  st_mhandle_t region = nullptr;
  int mx = -1;
  EXPECT_EQ(st_map(endpoint, ST_MAP_RX, memory.data(), -1, 0, kMost, &region, &mx), 0);
  EXPECT_EQ(st_map(endpoint, ST_MAP_RX, memory.data(), -1, kMost, kMost + 1, &region, &mx),
            -EINVAL);
}

// ---- 9.2 to 9.4 ----

class Section09Data : public WriteTest {};
STP_BOTH_WAYS(Section09Data);

TEST_P(Section09Data, MappedMemoryReceivesWhatIsSentThroughItsMx) {
  map(kBufsize * 4);
  announce(kBufsize);
  permit(0);
  send_block(kBufsize);
  ASSERT_EQ(receive(accepted_, got_), 0);
  expect_target_equals_source(kBufsize);
}

TEST_P(Section09Data, UnmapFreesTheBufxAndTheMx) {
  map(kBufsize * 4);
  ASSERT_EQ(st_unmap(target_region_), 0);
  auto cts = header(ST_OP_CTS);
  cts.blocksize = kBlocksize;
  cts.r_mx = static_cast<std::uint16_t>(mx_);
  cts.s_id = 9;
  EXPECT_EQ(send(accepted_, cts), -ERANGE);
  EXPECT_EQ(st_map(server_, ST_MAP_RX, target_->data(), -1, 0, 4, &target_region_, &mx_), 0)
      << "the Bufx are free";
  EXPECT_EQ(st_unmap(target_region_), 0);
  EXPECT_EQ(st_unmap(target_region_), -EBADF);
}

TEST_P(Section09Data, MxAllocGivesTheConnectionAnMxOfItsOwn) {
  map(kBufsize * 4);
  int own = -1;
  ASSERT_EQ(st_mx_alloc(accepted_, target_region_, &own), 0);
  EXPECT_NE(own, mx_);
  mx_ = own;
  announce(kBufsize);
  permit(0);
  send_block(kBufsize);
  ASSERT_EQ(receive(accepted_, got_), 0);
  expect_target_equals_source(kBufsize);
}

TEST_P(Section09Data, MxFreeEndsIt) {
  map(kBufsize * 4);
  int own = -1;
  ASSERT_EQ(st_mx_alloc(accepted_, target_region_, &own), 0);
  ASSERT_EQ(st_mx_free(accepted_, own), 0);
  EXPECT_EQ(st_mx_free(accepted_, own), -ERANGE);
  auto cts = header(ST_OP_CTS);
  cts.blocksize = kBlocksize;
  cts.r_mx = static_cast<std::uint16_t>(own);
  cts.s_id = 9;
  EXPECT_EQ(send(accepted_, cts), -ERANGE);
}

}  // namespace
}  // namespace stp::test
