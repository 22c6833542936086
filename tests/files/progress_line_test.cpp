// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/progress_line.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

ProgressView half_way() {
  ProgressView view;
  view.name = "holidays/a-name-that-is-quite-long-2026-11-26.tar.zst";
  view.done = 1'234'000'000;
  view.size = 2'468'000'000;
  view.rate = 118'000'000;
  view.file = 3;
  view.files = 12;
  return view;
}

TEST(ProgressLine, has_everything_at_every_usual_width) {
  const auto view = half_way();
  EXPECT_EQ(progress_line(view, 39), "holi...zst 50% 118MB/s 0:10 1.23GB 3/12");
  EXPECT_EQ(progress_line(view, 79),
            "holidays/a-nam...11-26.tar.zst  50%  118 MB/s  0:10 left  1.23 GB  file 3 of 12");
  EXPECT_EQ(progress_line(view, 199),
            view.name + "  50%  118 MB/s  0:10 left  1.23 GB  file 3 of 12");
}

TEST(ProgressLine, fits_whatever_the_width_and_the_name) {
  auto view = half_way();
  view.files = 123'456;
  view.file = 99'999;
  view.more = true;
  view.done = 999'999'999'999;
  view.size = 100'000'000'000'000'000;
  for (const std::string name :
       {"x", "a-name-that-is-quite-long-2026-11-26.tar.zst",
        "\xe6\x96\x87\xe4\xbb\xb6\xe5\x90\x8d"
        "\xe5\xad\x97\xe5\xbe\x88\xe9\x95\xbf\xe7\x9a\x84\xe5\x90\x8d\xe5\xad\x97.tar",
        "\xff\xfe\x80 not UTF-8 at all \xc3"}) {
    for (const bool stalled : {false, true}) {
      view.stalled.reset();
      view.name = name;
      if (stalled) view.stalled = std::chrono::seconds(100);
      view.trouble = "the link eth0 has no carrier; see that its cable is plugged in";
      for (std::size_t columns = 9; columns < 250; ++columns)
        EXPECT_LE(columns_of(progress_line(view, columns)), columns) << name;
    }
  }
}

TEST(ProgressLine, of_a_stream_has_no_percent) {
  auto view = half_way();
  view.name = "stdin";
  view.size.reset();
  view.files = 1;
  EXPECT_EQ(progress_line(view, 79), "stdin  118 MB/s  1.23 GB");
}

TEST(ProgressLine, of_a_tree_that_is_still_walked_says_that_more_follow) {
  auto view = half_way();
  view.more = true;
  EXPECT_NE(progress_line(view, 79).find("file 3 of 12+"), std::string::npos);
}

TEST(ProgressLine, says_that_it_is_stalled_and_why) {
  auto view = half_way();
  view.stalled = std::chrono::seconds(4);
  EXPECT_EQ(progress_line(view, 79), view.name + " 50% stalled 4 s");
  view.trouble = "eth0 has no carrier";
  EXPECT_EQ(progress_line(view, 79),
            shortened(view.name, 42) + " 50% stalled 4 s: eth0 has no carrier");
  EXPECT_EQ(progress_line(view, 40), "ho...st stalled 4 s: eth0 has no carrier");
  EXPECT_EQ(progress_line(view, 39), "stalled 4 s: eth0 has no carrier");
}

TEST(ProgressLine, of_a_stall_keeps_the_cause_readable_before_all_else) {
  auto view = half_way();
  view.stalled = std::chrono::seconds(4);
  view.trouble = "eth0 has no carrier: check the cable, and that the other end is up";
  EXPECT_EQ(progress_line(view, 79), "stalled 4 s: " + view.trouble);
  EXPECT_EQ(progress_line(view, 78),
            shortened(view.name, 41) + " 50% stalled 4 s: eth0 has no carrier")
      << "the remedy goes as a whole";
  EXPECT_EQ(progress_line(view, 39), "stalled 4 s: eth0 has no carrier");
  EXPECT_EQ(progress_line(view, 25), "eth0 has no carrier");
  view.trouble =
      "interface eth0 has MTU 1400 and this link 1500: longer frames do not leave; give up";
  EXPECT_EQ(progress_line(view, 39), "interface eth0 has MTU 1400 and this...");
}

TEST(ProgressLine, shows_no_rate_where_nothing_moves) {
  ProgressView view;
  view.name = "asking the receiver";
  view.moves = false;
  view.files = 1;
  EXPECT_EQ(progress_line(view, 79), "asking the receiver");
  view.file = 3;
  view.files = 12;
  EXPECT_EQ(progress_line(view, 79), "asking the receiver  file 3 of 12");
}

TEST(ProgressLine, ends_in_whole_percent_and_sane_times) {
  auto view = half_way();
  view.done = *view.size - 1;
  EXPECT_NE(progress_line(view, 79).find(" 99%"), std::string::npos);
  view.done = *view.size + 1;
  EXPECT_NE(progress_line(view, 79).find(" 100%"), std::string::npos);
  view.size = 0;
  EXPECT_NE(progress_line(view, 79).find(" 100%"), std::string::npos);
  view.size = std::uint64_t{1} << 63;
  view.rate = 1;
  EXPECT_NE(progress_line(view, 79).find("-:--"), std::string::npos);
  view.size = view.done + 3'725;
  EXPECT_NE(progress_line(view, 79).find("1:02:05 left"), std::string::npos);
}

TEST(Shortened, leaves_out_the_middle) {
  EXPECT_EQ(shortened("0123456789", 10), "0123456789");
  EXPECT_EQ(shortened("0123456789", 9), "012...789");
  EXPECT_EQ(shortened("0123456789", 3), "012");
  EXPECT_EQ(shortened("0123456789", 0), "");
  EXPECT_EQ(columns_of("\xe6\x96\x87"), 2U);
  EXPECT_EQ(columns_of("e\xcc\x81"), 1U) << "an accent of its own";
}

}  // namespace
}  // namespace stp::files
