// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/keys.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "tools/stpctl/interrupt.h"

namespace stp::stpctl {

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

bool Keys::sleep_until(std::chrono::steady_clock::time_point until) {
  if (!open_) return stpctl::sleep_until(until);
  constexpr std::chrono::milliseconds kSlice{100};
  for (;;) {
    if (interrupted()) return false;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, static_cast<int>(std::min(left, kSlice).count())) <= 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return false;
  }
}

}  // namespace stp::stpctl
