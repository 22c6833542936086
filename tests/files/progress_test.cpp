// SPDX-License-Identifier: BSD-3-Clause
// Standard error is a terminal of the test.
#include "tools/files/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libst/os/unique_fd.h"

namespace stp::files {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(terminal_.get());
    ::unlockpt(terminal_.get());
    resize(80);
    const service::UniqueFd end(::open(::ptsname(terminal_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
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

  service::UniqueFd terminal_;
  const service::UniqueFd before_{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
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

}  // namespace
}  // namespace stp::files
