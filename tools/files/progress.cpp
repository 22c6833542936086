// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace stp::files {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr std::uint64_t kBarWidth = 30;

double gigabits(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
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

Progress::Progress(std::string program, bool quiet)
    : program_(std::move(program)), quiet_(quiet), bar_(!quiet && ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  erase();
}

Progress::Item::Item(Progress& progress, std::string name, std::uint64_t size)
    : progress_(progress), name_(std::move(name)), size_(size) {
  std::lock_guard const lock(progress_.mutex_);
  progress_.items_.insert(this);
}

Progress::Item::~Item() {
  std::lock_guard const lock(progress_.mutex_);
  progress_.items_.erase(this);
  progress_.erase();
}

void Progress::Item::advance(std::uint64_t bytes) {
  if (!progress_.bar_) return;
  std::lock_guard const lock(progress_.mutex_);
  done_ += bytes;
  const auto now = std::chrono::steady_clock::now();
  if (now - progress_.drawn_at_ < kRedraw) return;
  progress_.drawn_at_ = now;
  progress_.draw();
}

void Progress::draw() {
  std::uint64_t done = 0, size = 0;
  double rate = 0;
  for (const auto* item : items_) {
    done += item->done_;
    size += item->size_;
    rate += gigabits(item->done_, seconds_since(item->began_));
  }
  const auto title =
      items_.size() == 1 ? (*items_.begin())->name_ : std::to_string(items_.size()) + " files";
  const auto part = size == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(size);
  const auto filled = std::min(kBarWidth, static_cast<std::uint64_t>(part * kBarWidth));
  const auto bar = std::string(filled, '#') + std::string(kBarWidth - filled, '-');
  std::fprintf(stderr, "\r\033[K%.40s [%s] %3.0f%% %.2f Gbit/s", title.c_str(), bar.c_str(),
               part * 100, rate);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::erase() {
  if (!std::exchange(drawn_, false)) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  std::lock_guard const lock(mutex_);
  erase();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Progress::complain(const std::string& line) {
  std::lock_guard const lock(mutex_);
  erase();
  std::fprintf(stderr, "%s: %s\n", program_.c_str(), line.c_str());
}

}  // namespace stp::files
