// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kRateOf = std::chrono::seconds(3);  // the time whose rate is shown

double gigabits(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
}

// Asked before each drawing, because the user may change the size of the window.
std::size_t terminal_columns() {
  constexpr std::size_t kUsual = 80, kLeast = 10;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < kLeast) return kUsual;
  return size.ws_col;
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::string rate_text(std::uint64_t bytes, double seconds) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%llu bytes in %.3f s, %.3f Gbit/s",
                static_cast<unsigned long long>(bytes), seconds, gigabits(bytes, seconds));
  return text.data();
}

Progress::Progress(std::string program, bool quiet, std::chrono::milliseconds stalled_after)
    : program_(std::move(program)),
      quiet_(quiet),
      stalled_after_(stalled_after),
      bar_(!quiet && ::isatty(STDERR_FILENO) == 1) {
  if (bar_) thread_ = std::thread([this] { run(); });
}

Progress::~Progress() {
  {
    std::lock_guard const lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  erase();
}

Progress::Item::Item(Progress& progress, std::string name, std::optional<std::uint64_t> size)
    : progress_(progress), name_(std::move(name)), size_(size) {
  std::lock_guard const lock(progress_.mutex_);
  if (!progress_.is_busy()) progress_.moved_at_ = Clock::now();
  progress_.small_ = false;
  progress_.items_.insert(this);
}

Progress::Item::~Item() {
  std::lock_guard const lock(progress_.mutex_);
  progress_.items_.erase(this);
  if (!progress_.is_busy()) progress_.erase();
}

void Progress::Item::advance(std::uint64_t bytes) {
  if (!progress_.bar_ || bytes == 0) return;
  std::lock_guard const lock(progress_.mutex_);
  done_ += bytes;
  progress_.note(bytes);
}

void Progress::Item::skip(std::uint64_t bytes) {
  std::lock_guard const lock(progress_.mutex_);
  done_ += bytes;
}

Progress::Watch::Watch(Progress& progress, std::function<std::string()> trouble)
    : progress_(progress) {
  std::lock_guard const lock(progress_.watch_mutex_);
  progress_.trouble_ = std::move(trouble);
}

Progress::Watch::~Watch() {
  std::lock_guard const lock(progress_.watch_mutex_);
  progress_.trouble_ = nullptr;
}

void Progress::count(std::size_t finished, std::size_t files, bool more) {
  if (!bar_) return;
  std::lock_guard const lock(mutex_);
  if (finished != finished_ || !is_busy()) moved_at_ = Clock::now();
  finished_ = finished;
  files_ = files;
  more_ = more;
  if (!is_busy()) erase();
}

void Progress::sent(std::size_t files) {
  if (!bar_) return;
  std::lock_guard const lock(mutex_);
  sent_ = files;
}

void Progress::moved(std::uint64_t bytes) {
  if (!bar_) return;
  std::lock_guard const lock(mutex_);
  small_ = true;
  note(bytes);
}

void Progress::note(std::uint64_t bytes) {
  moved_ += bytes;
  moved_at_ = Clock::now();
  on_disk_ = false;
}

void Progress::await_disk() {
  if (!bar_) return;
  std::lock_guard const lock(mutex_);
  on_disk_ = true;
}

void Progress::pause() {
  if (!bar_) return;
  std::lock_guard const lock(mutex_);
  note(0);
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kRedraw, [this] { return end_; }))
    if (is_busy()) draw(lock);
}

// Does not hold the lock while it asks for the trouble: nobody waits for the answer but the line.
void Progress::draw(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  sample(now);
  std::string trouble;
  if (now - moved_at_ >= stalled_after_) {
    lock.unlock();
    {
      std::lock_guard const watch_lock(watch_mutex_);
      if (trouble_) trouble = trouble_();
    }
    lock.lock();
    if (!is_busy() || end_) return;
  }
  auto shown = view(Clock::now());
  shown.trouble = std::move(trouble);
  if (items_.empty() && on_disk_ && shown.trouble.empty()) shown.stalled = {};
  // The last column stays free: some terminals begin a new line behind it. The cursor waits at the
  // begin: where a terminal that becomes narrower breaks the line, it stays there, above the rest.
  const auto columns = terminal_columns() - 1;
  const auto line = progress_line(shown, columns);
  std::fprintf(stderr, "%s%s\r", clearing(columns), line.c_str());
  std::fflush(stderr);
  drawn_ = true;
  drawn_columns_ = columns_of(line);
}

void Progress::sample(Clock::time_point now) {
  samples_.emplace_back(now, moved_);
  while (now - samples_.front().first > kRateOf) samples_.pop_front();
}

ProgressView Progress::view(Clock::time_point now) const {
  ProgressView shown;
  std::optional<std::uint64_t> size = 0;
  for (const auto* item : items_) {
    shown.done += item->done_;
    size = size && item->size_ ? std::optional(*size + *item->size_) : std::nullopt;
  }
  if (items_.empty()) {
    shown.done = moved_;
    shown.moves = on_disk_ || small_;
    shown.name = on_disk_ ? "the receiver writes to its disk"
                          : (small_ ? "small files" : "asking the receiver");
  } else {
    shown.size = size;
    shown.name =
        items_.size() == 1 ? (*items_.begin())->name_ : std::to_string(items_.size()) + " files";
  }
  const auto& [since, before] = samples_.front();
  const auto seconds = std::chrono::duration<double>(now - since).count();
  shown.rate = seconds > 0 ? static_cast<double>(moved_ - before) / seconds : 0;
  shown.file = std::min(finished_ + sent_ + 1, files_);
  shown.files = files_;
  shown.more = more_;
  if (now - moved_at_ >= stalled_after_)
    shown.stalled = std::chrono::duration_cast<std::chrono::seconds>(now - moved_at_);
  return shown;
}

// What clears the line that was drawn, and its rest below it where the terminal has become
// narrower.
const char* Progress::clearing(std::size_t columns) const {
  return drawn_ && drawn_columns_ > columns ? "\r\033[J" : "\r\033[K";
}

void Progress::erase() {
  if (!drawn_) return;
  std::fputs(clearing(terminal_columns() - 1), stderr);
  drawn_ = false;
  std::fflush(stderr);
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  std::lock_guard const lock(mutex_);
  erase();
  if (std::printf("%s\n", line.c_str()) >= 0 && std::fflush(stdout) == 0) return;
  const auto error = errno;
  if (std::exchange(unwritten_, true)) return;
  std::fprintf(stderr, "%s: cannot write to standard output: %s; files are still transferred\n",
               program_.c_str(), error_text(error).c_str());
}

bool Progress::could_say_all() {
  std::lock_guard const lock(mutex_);
  return !unwritten_;
}

void Progress::complain(const std::string& line) {
  std::lock_guard const lock(mutex_);
  erase();
  std::fprintf(stderr, "%s: %s\n", program_.c_str(), line.c_str());
}

}  // namespace stp::files
