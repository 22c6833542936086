// SPDX-License-Identifier: BSD-3-Clause
// Standard error is a terminal of the test.

#include "tools/files/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "libst/os/unique_fd.h"

namespace stp::files {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(terminal_.get());
    ::unlockpt(terminal_.get());
    resize(80);
    const os::UniqueFd end(::open(::ptsname(terminal_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ::dup2(end.get(), STDERR_FILENO);
  }
  ~ProgressTest() override { ::dup2(before_.get(), STDERR_FILENO); }
  void resize(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
  }
  // The next line that is drawn and for which `enough` holds.
  template <typename Enough>
  std::string next_line(const Enough& enough) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      const std::string begin = "\r\033[";  // then K, or J to clear what is below, too
      if (const auto at = text_.find(begin); at != std::string::npos) {
        const auto line_at = at + begin.size() + 1;
        const auto end = text_.find(begin, line_at);
        if (end != std::string::npos) {
          cleared_below_ += text_[line_at - 1] == 'J' ? 1 : 0;
          auto line = text_.substr(line_at, end - line_at);
          text_.erase(0, end);
          EXPECT_TRUE(line.ends_with('\r')) << line;
          line.pop_back();
          if (enough(line)) return line;
          continue;
        }
      }
      pollfd ready{terminal_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 100) <= 0) continue;
      char bytes[4096];
      const auto n = ::read(terminal_.get(), bytes, sizeof bytes);
      if (n > 0) text_.append(bytes, static_cast<std::size_t>(n));
    }
    return "nothing";
  }
  std::string next_line_with(const std::string& text) {
    return next_line([&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  os::UniqueFd terminal_;
  const os::UniqueFd before_{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
  std::string text_;
  unsigned cleared_below_ = 0;
};

TEST_F(ProgressTest, fits_the_terminal_also_when_that_changes) {
  Progress progress("test", false);
  Progress::Item item(progress, std::string(300, 'n'), 1'000);
  item.skip(100);
  item.advance(400);
  for (const auto columns : {80U, 40U, 200U}) {
    resize(static_cast<unsigned short>(columns));
    const std::size_t room = columns - 1;
    const auto line = next_line([&](const std::string& drawn) { return drawn.size() == room; });
    EXPECT_EQ(line.size(), room);
    EXPECT_NE(line.find("50%"), std::string::npos) << line;
  }
  EXPECT_EQ(cleared_below_, 1U) << "when it became narrower: it may have broken the line";
}

TEST_F(ProgressTest, counts_small_files) {
  Progress progress("test", false);
  progress.count(4, 40, true);
  progress.sent(2);
  progress.moved(1'000'000);
  const auto line = next_line_with("small files");
  EXPECT_NE(line.find("1.00 MB"), std::string::npos) << line;
  EXPECT_NE(line.find("file 7 of 40+"), std::string::npos) << line;
}

TEST_F(ProgressTest, speaks_of_small_files_only_when_one_has_moved) {
  Progress progress("test", false);
  progress.count(0, 1, false);
  const auto any = [](const std::string& line) { return !line.empty(); };
  EXPECT_EQ(next_line(any), "asking the receiver");
  {
    Progress::Item item(progress, "big", 1'000);
    item.advance(1'000);
    EXPECT_NE(next_line_with("big").find("100%"), std::string::npos);
  }
  progress.pause();
  EXPECT_EQ(next_line([](const std::string& line) { return !line.starts_with("big"); }),
            "asking the receiver");
}

TEST_F(ProgressTest, a_stall_is_shown_with_what_the_link_knows) {
  Progress progress("test", false, std::chrono::milliseconds(50));
  const Progress::Watch watch(progress, [] { return std::string("eth0 has no carrier"); });
  Progress::Item item(progress, "file", 1'000);
  item.advance(100);
  const auto line = next_line_with("stalled");
  EXPECT_NE(line.find("file 10% stalled 0 s: eth0 has no carrier"), std::string::npos) << line;
}

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

// As a dry run, whose output `head` reads.
TEST(Progress, that_only_tells_ends_when_nobody_takes_it) {
  EXPECT_EXIT(
      {
        const os::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
        ::dup2(full.get(), STDOUT_FILENO);
        Progress progress("test", false);
        progress.only_tells();
        try {
          progress.say("would send file");
        } catch (const std::runtime_error& failure) {
          std::fputs(failure.what(), stderr);
          ::_exit(7);
        }
        ::_exit(0);
      },
      ::testing::ExitedWithCode(7), "cannot write to standard output: No space left on device$");
}

TEST(Progress, says_once_what_was_complained_of_and_then_ends_it) {
  ::setenv("STP_LINK", "udp:", 1);
  Progress progress("it", true);
  testing::internal::CaptureStderr();
  const auto status = progress.run(true, [&]() -> bool {
    progress.complain("the peer does not answer");
    throw std::runtime_error("the peer does not answer");
  });
  EXPECT_EQ(status, EXIT_FAILURE);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "it: the peer does not answer\n");
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
