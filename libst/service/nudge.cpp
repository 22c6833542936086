// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/nudge.h"

#include <unistd.h>

#include <csignal>

// Older C libraries have the member, and no name for it.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace stp::service {
namespace {

constexpr long kNudgeInterval = 1'000'000;  // nanoseconds

// Returns a signal that nothing else uses. Its handler is empty: the signal only has to arrive.
int nudging_signal() {
  static const int number = [] {
    const auto chosen = SIGRTMAX - 3;
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(chosen, &action, nullptr);  // without SA_RESTART: the signal ends waits
    return chosen;
  }();
  return number;
}

}  // namespace

Nudge::Nudge() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = nudging_signal();
  event.sigev_notify_thread_id = ::gettid();
  sigset_t let_in;
  sigemptyset(&let_in);
  sigaddset(&let_in, event.sigev_signo);
  ::pthread_sigmask(SIG_UNBLOCK, &let_in, nullptr);
  made_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
}

Nudge::~Nudge() {
  if (made_) ::timer_delete(timer_);
}

void Nudge::start() {
  set(kNudgeInterval);
}

void Nudge::stop() {
  set(0);
}

void Nudge::set(long nanoseconds) {
  if (!made_) return;
  const itimerspec when{.it_interval = {.tv_sec = 0, .tv_nsec = nanoseconds},
                        .it_value = {.tv_sec = 0, .tv_nsec = nanoseconds}};
  ::timer_settime(timer_, 0, &when, nullptr);
}

}  // namespace stp::service
