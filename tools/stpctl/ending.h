// SPDX-License-Identifier: BSD-3-Clause
// What ends a command: a failure, a signal, a key.
#pragma once

#include <termios.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace stp::stpctl {

// Thrown when a command fails: stderr gets the cause and the remedy, and the exit status is 1.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& what) : std::runtime_error(what), what_each{what} {}
  // Of several links, each has a line.
  explicit Failure(const std::vector<std::string>& each);
  const std::vector<std::string> what_each;
};

// What the command line or STP_LINK names cannot be: the exit status is 2.
class WrongUsage : public Failure {
 public:
  using Failure::Failure;
};

// A daemon has not answered in time.
class Silence : public Failure {
 public:
  using Failure::Failure;
};

// Handles Ctrl-C (SIGINT) and SIGTERM as requests to end. Only the main thread receives them, so
// any system call in which it sleeps returns with EINTR, also one that it begins afterwards, until
// it asks whether it was interrupted().

// Call before any thread starts: threads begin with these signals blocked.
void watch_for_interrupts();
// Call in the main thread, once the threads have started.
void let_interrupts_in();
bool interrupted();
// Sleeps until `until`. Returns false if it was interrupted before.
bool sleep_until(std::chrono::steady_clock::time_point until);

// Keys that are pressed on a terminal, one at a time. The terminal is as before when the object
// ends.
class Keys {
 public:
  // `wanted` false, or no terminal at standard input: there are none.
  explicit Keys(bool wanted);
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // The next key, as the terminal sends it: "q", "\033[A". "": it is `until`, or interrupted().
  std::string next(std::chrono::steady_clock::time_point until);

 private:
  std::string take();

  bool open_ = false;
  std::string pressed_;  // and not taken yet
  termios before_{};
};

}  // namespace stp::stpctl
