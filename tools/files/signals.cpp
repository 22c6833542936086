// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "stp/base/start_thread.h"

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

Signals::Signals(std::function<void()> on_stop)
    : on_stop_(std::move(on_stop)),
      signal_fd_(block_signals()),
      end_fd_(::eventfd(0, EFD_CLOEXEC)),
      thread_(start_thread([this] { wait(); })) {}

void Signals::wait() {
  pollfd fds[] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
  while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
  if (fds[0].revents == 0) return;
  stop_ = true;
  if (on_stop_) on_stop_();
}

Signals::~Signals() {
  ::eventfd_write(end_fd_, 1);
  thread_.join();
  ::close(signal_fd_);
  ::close(end_fd_);
}

}  // namespace stp::files
