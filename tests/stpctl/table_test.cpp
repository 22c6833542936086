// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/table.h"

#include <gtest/gtest.h>

namespace stp::stpctl {
namespace {

TEST(TableText, ColumnsAreAsWideAsTheirContentAndNumbersAlignRight) {
  Table table({"NAME", "BYTES>", "NOTE"});
  EXPECT_TRUE(table.empty());
  table.row({"a", "1", "first"});
  table.row({"longer", "1234567", ""});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.text(),
            "NAME      BYTES  NOTE\n"
            "a             1  first\n"
            "longer  1234567\n");
}

TEST(TableText, ARowHasACellInEachColumnAndNoMore) {
  Table table({"A", "B"});
  table.row({"1"});
  table.row({"1", "2", "3"});
  EXPECT_EQ(table.text(), "A  B\n1\n1  2\n");
}

TEST(Fit, RowsAreCutAndSentencesContinueBelow) {
  EXPECT_EQ(fit("NAME  BYTES\na  1\n", 0), "NAME  BYTES\na  1\n");
  EXPECT_EQ(fit("NAME  BYTES\na  1\n", 6), "NAME  \na  1\n");
  EXPECT_EQ(fit("opened 1/s, failed 2/s; dropped 3/s\nx\n", 20),
            "opened 1/s, failed\n2/s; dropped 3/s\nx\n");
  EXPECT_EQ(fit("a, incomprehensible\n", 5), "a,\nincom\n");
  EXPECT_EQ(fit("\n\n", 5), "\n\n");
}

TEST(ShortNumbers, BytesCountBy1024AndRatesBy1000) {
  EXPECT_EQ(short_bytes(0), "0");
  EXPECT_EQ(short_bytes(1'023), "1023");
  EXPECT_EQ(short_bytes(1'024), "1.0K");
  EXPECT_EQ(short_bytes(1'536), "1.5K");
  EXPECT_EQ(short_bytes(std::uint64_t{100} << 20), "100M");
  EXPECT_EQ(short_bytes(~std::uint64_t{0}), "16.0E");
  EXPECT_EQ(short_rate(999), "999");
  EXPECT_EQ(short_rate(1'500), "1.5K");
  EXPECT_EQ(short_rate(25e9), "25.0G");
}

}  // namespace
}  // namespace stp::stpctl
