// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/wait.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace stp::fi {

Clock::time_point deadline_in(int timeout) {
  return timeout < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout);
}

Wait::~Wait() {
  if (epoll_ >= 0) ::close(epoll_);
  if (event_ >= 0) ::close(event_);
}

int Wait::open(int queue) {
  if (is_open()) return 0;
  if (queue < 0) return queue;
  event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const auto epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable{};
  readable.events = EPOLLIN;
  const auto made = event_ >= 0 && epoll >= 0 &&
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, event_, &readable) == 0 &&
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, queue, &readable) == 0;
  if (made) {
    epoll_ = epoll;
    return 0;
  }
  const auto error = errno;
  if (epoll >= 0) ::close(epoll);
  if (event_ >= 0) ::close(event_);
  event_ = -1;
  return -error;
}

void Wait::wake() {
  if (!is_open() || awake_) return;
  awake_ = true;
  ::eventfd_write(event_, 1);
}

void Wait::clear() {
  if (!awake_) return;
  awake_ = false;
  eventfd_t count = 0;
  ::eventfd_read(event_, &count);
}

bool Wait::sleep(Clock::time_point deadline) const {
  auto limit = -1;
  if (deadline != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    limit = static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
  }
  pollfd readable{.fd = epoll_, .events = POLLIN, .revents = 0};
  return ::poll(&readable, 1, limit) > 0;
}

}  // namespace stp::fi
