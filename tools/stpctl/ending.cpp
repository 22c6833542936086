// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/ending.h"

#include <poll.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace stp::stpctl {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGALRM);
  return set;
}

// A signal that arrives just before a call that sleeps would not end it: so others follow until
// it has been noticed.
void repeat(bool on) {
  const auto before = errno;  // of what a signal has interrupted
  constexpr suseconds_t kEach = 20'000;
  itimerval timer{};
  if (on) timer.it_interval.tv_usec = timer.it_value.tv_usec = kEach;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  errno = before;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace

Failure::Failure(const std::vector<std::string>& each)
    : std::runtime_error(joined(each)), what_each(each) {}

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = [](int) {
    flag = true;
    repeat(true);
  };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const auto set = signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void let_interrupts_in() {
  const auto set = signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool interrupted() {
  if (flag) repeat(false);
  return flag;
}

bool sleep_until(std::chrono::steady_clock::time_point until) {
  // A signal that arrives between the check and the sleep is noticed after this time at most.
  constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(100);
  for (;;) {
    if (interrupted()) return false;
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) return true;
    const auto slice = std::min<std::chrono::nanoseconds>(left, kSlice);
    const timespec length{.tv_sec = 0, .tv_nsec = static_cast<long>(slice.count())};
    ::nanosleep(&length, nullptr);
  }
}

// A program in the background may not change its terminal: the kernel would stop it.
Keys::Keys(bool wanted) {
  if (!wanted || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
  if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  open_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

Keys::~Keys() {
  if (open_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

// A sequence begins with ESC and [, and ends with a letter or ~.
std::string Keys::take() {
  std::size_t length = pressed_.empty() ? 0 : 1;
  if (pressed_.starts_with("\033[")) {
    const auto end = pressed_.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ~", 2);
    length = end == std::string::npos ? pressed_.size() : end + 1;
  }
  const auto key = pressed_.substr(0, length);
  pressed_.erase(0, length);
  return key;
}

std::string Keys::next(std::chrono::steady_clock::time_point until) {
  constexpr std::chrono::milliseconds kSlice{100};
  if (!open_) return stpctl::sleep_until(until), "";
  while (!interrupted()) {
    if (!pressed_.empty()) return take();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return "";
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, static_cast<int>(std::min(left, kSlice).count())) <= 0) continue;
    char bytes[64];
    const auto count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) return "q";  // the terminal is gone
    pressed_.assign(bytes, static_cast<std::size_t>(count));
  }
  return "";
}

}  // namespace stp::stpctl
