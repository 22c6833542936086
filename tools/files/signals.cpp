// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "dpdk_port/link/start_thread.h"
#include "tools/cli/say.h"

namespace stp::files {
namespace {

int block_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

}  // namespace

Signals::Signals(std::string program, std::chrono::milliseconds grace)
    : program_(std::move(program)),
      grace_(grace),
      signal_fd_(block_signals()),
      end_fd_(::eventfd(0, EFD_CLOEXEC)),
      thread_(start_thread([this] { wait(); })) {}

// Takes a signal. False: the object goes.
bool Signals::await_signal(int milliseconds) const {
  pollfd fds[] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
  while (::poll(fds, 2, milliseconds) < 0 && errno == EINTR) {
  }
  signalfd_siginfo taken{};
  if (fds[0].revents != 0) (void)!::read(signal_fd_, &taken, sizeof taken);
  return fds[1].revents == 0;
}

void Signals::wait() {
  if (!await_signal(-1)) return;
  stop_ = true;
  using Clock = std::chrono::steady_clock;
  const auto first = Clock::now();
  const auto left_of = [&](std::chrono::milliseconds time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first + time - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  };
  for (int left = 0; (left = left_of(std::min(kTogether, grace_))) > 0;)
    if (!await_signal(left)) return;
  if (!await_signal(takes_time_ ? -1 : left_of(grace_))) return;
  cli::say(program_, "interrupted, and ended at once");
  ::_exit(EXIT_FAILURE);
}

Signals::~Signals() {
  ::eventfd_write(end_fd_, 1);
  thread_.join();
  ::close(signal_fd_);
  ::close(end_fd_);
}

}  // namespace stp::files
