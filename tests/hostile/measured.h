// SPDX-License-Identifier: BSD-3-Clause
// Measures what hostile programs cost others: the round trips and requests of an honest pair, and
// an operator who connects again and again, as stpctl does. Prints the longest and p99.9 of each,
// and fails if they waited longer than stpd may make them wait.
//
// The machine may be busy. So what the threads that take part in a round trip or request (that of
// the honest program, and those of stpd) wait for a processor meanwhile does not count: the kernel
// tells it. What delays any program without being counted there (a hypervisor, interrupts), two
// idle threads show that hand a byte to each other at the same time. A round trip takes two such
// exchanges, a request one, and each thread may be interrupted once more: so four do not count.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/hostile/daemon.h"
#include "tests/hostile/honest.h"

namespace stp::hostile {

class Measured {
 public:
  // What stpd may add, however busy the machine is.
  static constexpr std::chrono::milliseconds kBound{50};

  // Starts the pair and the others, all at `daemon`.
  Measured(HonestPair& pair, const Daemon& daemon);
  ~Measured() { end(); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  // Ends them, prints and judges. `what`: who was beside them.
  Tally stop(const std::string& what);
  // What took too long, after stop(); "": nothing.
  [[nodiscard]] const std::string& too_slow() const { return too_slow_; }

 private:
  void exchange();
  void look();
  void end();
  void judge(const std::string& what, const char* name, const Times& times);

  HonestPair& pair_;
  const std::string socket_;
  const Servers servers_;
  std::atomic<bool> stop_{false};
  Times idle_, operator_;
  std::string fault_, too_slow_;  // fault_: of the operator
  std::thread idle_thread_, operator_thread_;
};

}  // namespace stp::hostile
