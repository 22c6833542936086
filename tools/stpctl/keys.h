// SPDX-License-Identifier: BSD-3-Clause
// Keys that are pressed on a terminal, one at a time. The terminal is as before when the object
// ends.
#pragma once

#include <termios.h>

#include <chrono>

namespace stp::stpctl {

class Keys {
 public:
  // `wanted` false, or no terminal at standard input: there are none.
  explicit Keys(bool wanted);
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // Sleeps until `until`. Returns false before, if q was pressed, or on an interrupt
  // (interrupt.h).
  bool sleep_until(std::chrono::steady_clock::time_point until);

 private:
  bool open_ = false;
  termios before_{};
};

}  // namespace stp::stpctl
