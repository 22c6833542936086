// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_remains.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

constexpr std::uint32_t kBlocks = 10;
constexpr std::size_t kSlice = 4;

// A Transfer of kBlocks Blocks that are granted, in `table`.
InboundTransfer& add(TransferTable& table, std::uint32_t r_id) {
  auto& transfer = table.begin(r_id, r_id, 1'000);
  for (std::uint32_t b = 0; b < kBlocks; ++b) transfer.blocks[b].transfer = &transfer;
  return transfer;
}

TEST(InboundRemains, go_in_slices_as_long_as_they_are_asked_to) {
  TransferTable table;
  InboundRemains remains;
  EXPECT_TRUE(remains.empty());
  remains.add(table.take(add(table, 1)));
  add(table, 2);
  add(table, 3);
  remains.add(table.take_all());
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.find(2), nullptr);
  std::size_t pieces = 0, slices = 0;
  while (!remains.empty()) {
    const auto done = remains.dismantle(kSlice);
    EXPECT_LE(done, kSlice);
    pieces += done;
    ASSERT_LT(++slices, 100U);
  }
  const auto all = 3 * (kBlocks + 1);  // a Transfer counts, too
  EXPECT_EQ(pieces, all);
  EXPECT_EQ(slices, (all + kSlice - 1) / kSlice);
  EXPECT_EQ(remains.dismantle(kSlice), 0U);
}

}  // namespace
}  // namespace stp::test
